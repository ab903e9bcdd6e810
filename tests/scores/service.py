"""A real classifier behind HTTP on loopback, which drops, delays and refuses as it is told."""

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from torch import Tensor

from pinprick.oracle import exact_linear

SHAPE = (3, 6, 5)


@dataclass
class Flaky:
    """What the service does, and what it has seen.

    Attributes:
        troubles: What happens to each request in turn: "" is an answer, "drop" none at all,
            "delay" one that comes too late, "shape" and "nan" a wrong one, "page" one that is no
            JSON, and a number that HTTP status.
        patience: How many images are answered of those whose first value is this; then they meet
            with ``fault``, and whatever comes with them.
        fault: As one of the troubles.
        received: How many images each request brought.
        answered: Every image that was answered, in order.
        address: Where the service is.
    """

    troubles: list[str] = field(default_factory=list)
    patience: dict[float, int] = field(default_factory=dict)
    fault: str = "503"
    received: list[int] = field(default_factory=list)
    answered: list[bytes] = field(default_factory=list)
    address: str = ""

    def ask(self, images: Tensor) -> list[list[float]]:
        """What a user would write: send the images, read the scores."""
        request = urllib.request.Request(self.address, images.numpy().tobytes())
        with urllib.request.urlopen(request, timeout=0.3) as response:
            scores: list[list[float]] = json.load(response)
        return scores

    def lost(self, images: Tensor) -> list[bool]:
        """Which of the images are not answered any more."""
        return [self.patience.get(image[0, 0, 0].item(), 1) < 1 for image in images]

    def trouble_with(self, images: Tensor) -> str:
        return self.fault if any(self.lost(images)) else ""

    def note(self, images: Tensor) -> None:
        """Write down what is answered."""
        self.answered += [image.numpy().tobytes() for image in images]
        for image in images:
            mark = image[0, 0, 0].item()
            if mark in self.patience:
                self.patience[mark] -= 1


@contextmanager
def open_service() -> Iterator[Flaky]:
    flaky = Flaky()
    model = exact_linear(4, SHAPE)
    size = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            flaky.received.append(len(body) // size)
            images = torch.frombuffer(bytearray(body), dtype=torch.float32).view(-1, *SHAPE)
            trouble = flaky.troubles.pop(0) if flaky.troubles else flaky.trouble_with(images)
            if trouble == "drop":
                return  # without a word
            if trouble == "delay":
                time.sleep(0.5)
                return
            if trouble.isdigit():
                self.send_error(int(trouble))
                return
            with torch.no_grad():
                scores = model(images.double())
            if trouble == "nan":
                scores[flaky.lost(images)] = torch.nan
            elif trouble == "shape":
                scores = scores[:, :3]
            elif trouble != "page":
                flaky.note(images)
            answer = json.dumps(scores.tolist()).encode()
            if trouble == "page":
                answer = b"<html>please come back later</html>"
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    flaky.address = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield flaky
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
