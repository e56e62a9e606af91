"""Who may do what: two tokens, the cookie of a page, and which Host and Origin are served.

Other people share a machine, so that a token is needed even on loopback. A page of elsewhere can
make a browser send requests here: Host and Origin say so, and it cannot read the token.
"""

import hmac
import ipaddress
import os
import secrets
import socket
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from recoup.checks import InputError
from recoup.serve.problems import Problem

FULL, READING = "full", "read"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WILD = ("0.0.0.0", "::", "")
TOKEN_BYTES, TOKEN_LENGTH = 24, 20  # that are drawn; characters that one of the user's has at least
SESSION = b"recoup session"


class Tokens(NamedTuple):
    """What one must know to read and write, and to read alone."""

    full: str
    reading: str

    def rights(self, token: str) -> str | None:
        """What a token allows; all are compared in the same time, wherever they differ."""
        given = token.encode(errors="surrogatepass")
        full, reading = (hmac.compare_digest(given, one.encode()) for one in self)
        return FULL if full else READING if reading else None

    def rights_of_session(self, value: str) -> str | None:
        """What the cookie of a page allows."""
        given = value.encode(errors="surrogatepass")
        full, reading = (hmac.compare_digest(given, session_of(one).encode()) for one in self)
        return FULL if full else READING if reading else None


def session_of(token: str) -> str:
    """The cookie's value for a token, which does not tell it."""
    return hmac.new(token.encode(), SESSION, "sha256").hexdigest()


def new_tokens() -> Tokens:
    """Two that nobody knows."""
    return Tokens(secrets.token_urlsafe(TOKEN_BYTES), secrets.token_urlsafe(TOKEN_BYTES))


def tokens_in(path: Path) -> Tokens:
    """The tokens of a file, the full one and that to read with, a line each; made if not there."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as wrong:
        raise InputError(f"{path} cannot be written: {wrong.strerror}.") from None
    found = new_tokens()
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(found) + "\n")
    return found


def _read(path: Path) -> Tokens:
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise InputError(f"{path} can be read by others: chmod 600 {path}")
        lines = path.read_text().split()
    except (OSError, UnicodeDecodeError) as wrong:
        raise InputError(f"{path} cannot be read: {wrong}.") from None
    long = all(len(line) >= TOKEN_LENGTH and line.isascii() for line in lines)
    if len(lines) != 2 or not long or lines[0] == lines[1]:
        raise InputError(
            f"{path} must hold two different tokens of at least {TOKEN_LENGTH} characters, a line "
            "each: to write, and to read alone. A file that is not there is made."
        )
    return Tokens(*lines)


class Door(NamedTuple):
    """Where a server listens, and what opens it."""

    host: str
    port: int
    secure: bool
    tokens: Tokens

    @property
    def cookie(self) -> str:
        """The name of the cookie: servers on other ports of a machine have their own."""
        return f"recoup_{self.port}"

    @property
    def address(self) -> str:
        """What a browser on this machine is given."""
        host = "127.0.0.1" if self.host in WILD else self.host
        name = f"[{host}]" if ":" in host else host
        return f"http{'s' if self.secure else ''}://{name}:{self.port}/"

    def check_origin(self, host: str, origin: str | None) -> None:
        """Raises unless a request names this server, and comes from a page of it or from none."""
        if not self._is_ours(host):
            said = f"the Host of the request is not this server: ask for {self.address}"
            raise Problem(HTTPStatus.FORBIDDEN, f"{said}, at that port, or name --host.")
        ours = f"http{'s' if self.secure else ''}://{host}"
        if origin is not None and origin.lower() != ours.lower():
            raise Problem(HTTPStatus.FORBIDDEN, "the request comes from a page of another origin.")

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        name, port = (name, port) if name else (host, "")
        if (port or ("443" if self.secure else "80")) != str(self.port):
            return False
        bare = name.removeprefix("[").removesuffix("]").lower()
        if bare in (self.host.lower(), *LOOPBACK):
            return True
        return self.host in WILD and (_is_number(bare) or bare == socket.gethostname().lower())

    def rights(self, request: Request) -> str | None:
        """What whoever sent a request may do; None: nothing."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.tokens.rights(token.strip())
        return self.tokens.rights_of_session(request.cookies.get(self.cookie, ""))

    def has_token(self, request: Request) -> bool:
        """Whether whoever sent a request has tried to be known."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return bool(kind.lower() == "bearer" and token.strip()) or self.cookie in request.cookies

    def open_session(self, token: str) -> Response:
        """The answer that gives a page its cookie."""
        if self.tokens.rights(token) is None:
            raise Problem(HTTPStatus.UNAUTHORIZED, "this token is not known here.", ASK_FOR_TOKEN)
        response = Response(status_code=HTTPStatus.NO_CONTENT)
        how = {"httponly": True, "samesite": "strict", "path": "/", "secure": self.secure}
        response.set_cookie(self.cookie, session_of(token), **how)  # type: ignore[arg-type]
        return response

    def close_session(self) -> Response:
        """The answer that takes it back."""
        response = Response(status_code=HTTPStatus.NO_CONTENT)
        response.delete_cookie(self.cookie, path="/", httponly=True, samesite="strict")
        return response


ASK_FOR_TOKEN = {"WWW-Authenticate": "Bearer"}


def _is_number(host: str) -> bool:
    """Whether a host is an address: no name that somebody could point here."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
