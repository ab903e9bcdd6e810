"""What every request must pass before it reaches a page: host, origin, token and rate.

A page of another site can make a browser send requests to this server. So the name in ``Host`` must
be one that this server goes by, which stops pages that point their own name at this machine, and
``Origin`` must be this server, which stops all others. Beyond loopback a token is needed as well.
"""

import hmac
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PER_SECOND, BURST = 100.0, 300.0  # requests, over all clients
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
_READING = ("GET", "HEAD")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Who may ask.

    Attributes:
        host: The address that the server is bound to.
        token: What a client must know; empty on loopback.
    """

    host: str
    token: str = ""

    def knows_host(self, name: str) -> bool:
        """Whether a ``Host`` is a name of this server.

        A server bound to all addresses goes by every address and by the name of the machine.
        """
        host = _without_port(name)
        if is_loopback(self.host):
            return host in ("localhost", "127.0.0.1", "::1", self.host)
        if host in (self.host.lower(), socket.gethostname().lower(), "localhost"):
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return self.host in ("0.0.0.0", "::")

    def refusal(self, method: str, headers: dict[str, str]) -> tuple[int, str] | None:
        """The status and the line with which a request is refused; None if it may pass."""
        name = headers.get("host", "")
        if not self.knows_host(name):
            return 421, "this server does not go by that name; open the address that it printed"
        origin = headers.get("origin")
        if origin is None and method not in _READING:
            return 403, "a request that changes something needs an Origin"
        if origin is not None and origin not in (f"http://{name}", f"https://{name}"):
            return 403, "requests of other sites are refused"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "requests of other sites are refused"
        return None


class Safety:
    """The application, with every request checked and every answer labelled.

    Args:
        app: The application.
        rules: Who may ask.
        now: The clock, in seconds.
    """

    def __init__(self, app: App, rules: Rules, now: Callable[[], float] = time.monotonic) -> None:
        self._app, self._rules, self._now = app, rules, now
        self._left, self._at = BURST, now()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]
        }
        labelled = _labelled(send)
        refusal = self._rules.refusal(scope["method"], headers)
        if refusal is not None:
            return await _answer(labelled, *refusal)
        if not self._within_rate():
            return await _answer(labelled, 429, "too many requests; wait a second")
        if self._rules.token:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if given and hmac.compare_digest(given.encode(), self._rules.token.encode()):
                cookie = f"{_cookie_name(headers)}={self._rules.token}"
                return await _answer(labelled, 303, "", location="/", cookie=cookie)
            known = _cookie(headers.get("cookie", ""), _cookie_name(headers))
            if not hmac.compare_digest(known.encode(), self._rules.token.encode()):
                return await _answer(
                    labelled, 401, "open the address with the token that it printed"
                )
        await self._app(scope, receive, labelled)

    def _within_rate(self) -> bool:
        now = self._now()
        self._left = min(BURST, self._left + PER_SECOND * (now - self._at))
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _labelled(send: Send) -> Send:
    """The same, with the headers that every answer has, unless it brings its own."""

    async def with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            own = {key for key, _ in message["headers"]}
            more = [
                (key.encode(), value.encode())
                for key, value in _HEADERS.items()
                if key.encode() not in own
            ]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return with_headers


async def _answer(
    send: Send, status: int, line: str, *, location: str = "", cookie: str = ""
) -> None:
    body = line.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    if location:
        headers.append((b"location", location.encode()))
    if cookie:
        value = f"{cookie}; Path=/; HttpOnly; SameSite=Strict"
        headers.append((b"set-cookie", value.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _cookie_name(headers: Mapping[str, str]) -> str:
    """The name of the cookie with the token; cookies belong to a host, not to one of its ports."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"pinprick_token_{port}" if port.isdecimal() else "pinprick_token"


def _cookie(text: str, wanted: str) -> str:
    """The token among all cookies; those of other servers on this host may be malformed."""
    pairs = (part.strip().partition("=") for part in text.split(";"))
    return next((value for name, _, value in pairs if name == wanted), "")


def _without_port(name: str) -> str:
    """``localhost`` of ``localhost:8000``, ``::1`` of ``[::1]:8000``, in lower case."""
    name = name.lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]
