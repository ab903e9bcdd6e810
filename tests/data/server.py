"""A real HTTP server on loopback that can be told to misbehave."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Shop:
    """Files by path, and what goes wrong.

    Attributes:
        files: What is served.
        ranges: Whether a part of a file can be asked for.
        drops: Bytes after which each connection in turn is cut.
        refusals: Status codes that the first requests get instead of an answer.
        asked: The path and range of every request.
        sent: Bytes of files that were sent, over all answers.
        address: Where the server is.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    drops: list[int] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    sent: int = 0
    address: str = ""


@contextmanager
def open_shop() -> Iterator[Shop]:
    shop = Shop()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            shop.asked.append((self.path, wanted))
            if shop.refusals:
                self.send_error(shop.refusals.pop(0))
                return
            if self.path not in shop.files:
                self.send_error(404)
                return
            body, start = shop.files[self.path], 0
            if wanted and shop.ranges:
                start = int(wanted.removeprefix("bytes=").rstrip("-"))
                if start >= len(body):
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            else:
                self.send_response(200)
            rest = body[start:]
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            rest = rest[: shop.drops.pop(0)] if shop.drops else rest
            shop.sent += len(rest)
            self.wfile.write(rest)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    shop.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield shop
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
