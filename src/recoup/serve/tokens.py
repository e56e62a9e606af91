"""Who may do what: two tokens, the session of a page, and which Host and Origin are served.

Other people share a machine, so that a token is needed even on loopback. A page of elsewhere can
make a browser send requests here: Host and Origin say so, and it has no session. No cookie is set:
those go to every port of a host, what a page keeps to itself goes to none but its own.
"""

import hmac
import ipaddress
import os
import secrets
import socket
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request

from recoup.checks import InputError
from recoup.serve.problems import Problem

FULL, READING = "full", "read"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WILD = ("0.0.0.0", "::", "")
TOKEN_BYTES, TOKEN_LENGTH = 24, 20  # that are drawn; characters that one of the user's has at least
SESSION, SESSION_SECONDS = "recoup session ", 7 * 24 * 3600.0  # what is signed begins so; its life


class Tokens(NamedTuple):
    """What one must know to read and write, and to read alone."""

    full: str
    reading: str

    def rights(self, given: str) -> str | None:
        """What a token or a session allows, compared in the same time wherever they differ."""
        full, reading = (_same(given, one) or _is_session(given, one) for one in self)
        return FULL if full else READING if reading else None

    def session(self, token: str) -> str | None:
        """A session for a token: until when it is good, something random, and both signed.

        It does not tell the token, and is good after a restart too, if the tokens were kept.
        """
        if not any(_same(token, one) for one in self):
            return None
        said = f"{time.time() + SESSION_SECONDS:.0f}.{secrets.token_urlsafe(TOKEN_BYTES)}"
        return f"{said}.{_signed(said, token)}"


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), known.encode())


def _is_session(given: str, token: str) -> bool:
    said, _, signature = given.rpartition(".")
    return _same(signature, _signed(said, token)) and time.time() < float(said.partition(".")[0])


def _signed(said: str, token: str) -> str:
    content = (SESSION + said).encode(errors="surrogatepass")
    return hmac.new(token.encode(), content, "sha256").hexdigest()


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
    sound = all(
        len(line) >= TOKEN_LENGTH and line.isascii() and line.isprintable() for line in lines
    )
    if len(lines) != 2 or not sound or lines[0] == lines[1]:
        raise InputError(
            f"{path} must hold two different tokens of at least {TOKEN_LENGTH} characters, a line "
            "each: to write, and to read alone. A file that is not there is made."
        )
    return Tokens(*lines)


@dataclass(frozen=True)
class Door:
    """Where a server listens, and what opens it."""

    host: str
    port: int
    secure: bool
    tokens: Tokens
    ended: set[str] = field(default_factory=set)  # sessions

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
        given = said_by(request)
        return None if given in self.ended else self.tokens.rights(given)

    def open_session(self, token: str) -> str:
        """What a page is given for a token."""
        session = self.tokens.session(token)
        if session is None:
            raise Problem(HTTPStatus.UNAUTHORIZED, "this token is not known here.", ASK_FOR_TOKEN)
        return session

    def close_session(self, request: Request) -> None:
        """The session that a request has allows nothing from now on."""
        given = said_by(request)
        if self.rights(request) is not None and given not in self.tokens:
            self.ended.add(given)


def said_by(request: Request) -> str:
    """The token or session that whoever sent a request says to have; empty where none."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


ASK_FOR_TOKEN = {"WWW-Authenticate": "Bearer"}


def _is_number(host: str) -> bool:
    """Whether a host is an address: no name that somebody could point here."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
