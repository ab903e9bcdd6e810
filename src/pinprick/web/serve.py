"""Serve the pages until Ctrl-C: bind first, print the address, open it."""

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from pinprick.errors import BadInput, MissingExtra
from pinprick.web.safety import Rules, is_loopback

_BACKLOG = 64


def check_installed() -> None:
    """Raise ``MissingExtra`` unless the packages of the extra are installed."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtra("pinprick web", package, "web")


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    models: Sequence[str] = (),
    device: str = "auto",
    show: Callable[[str], None] = print,
    browse: bool = True,
) -> None:
    """Serve the pages until the process is interrupted.

    Args:
        host: The address to bind to. Beyond loopback, a token in the address is needed.
        port: The port; 0 for any that is free.
        models: Names of further models that the page may choose.
        device: The device of all jobs.
        show: Receives the address, and a warning where other machines can reach it.
        browse: Whether to open the address in a browser.
    """
    check_installed()
    import uvicorn

    from pinprick.jobs.device import find_device
    from pinprick.web.app import make_app
    from pinprick.web.choices import list_model_names
    from pinprick.web.workbench import Workbench

    find_device(device)
    token = "" if is_loopback(host) else secrets.token_urlsafe(24)
    bound = bind(host, port)
    workbench = Workbench(list_model_names(models), device)
    app = make_app(workbench, Rules(host=host, token=token), Path.cwd())
    address = _address(host, bound.getsockname()[1], token)
    show(address)
    if token:
        show("other machines can reach this; anyone who knows the address can run attacks here")
    if browse:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        limit_concurrency=64,
    )
    try:
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        workbench.queue.close()
        bound.close()


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; ``BadInput`` where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(_BACKLOG)  # so that a browser that comes early waits instead of failing
    except OSError as error:
        bound.close()
        reason = error.strerror or str(error)
        raise BadInput(f"cannot listen on {host}:{port} ({reason}); try another --port") from None
    return bound


def _address(host: str, port: int, token: str) -> str:
    if host in ("0.0.0.0", "::"):
        name = socket.gethostname()
    else:
        name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/{f'?token={token}' if token else ''}"
