"""Starts the server, prints its address, and stops it in order."""

import errno
import logging
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote

import uvicorn

from recoup.checks import InputError
from recoup.core.types import Plain
from recoup.serve.application import application
from recoup.serve.connections import Connection
from recoup.serve.hub import Hub
from recoup.serve.tokens import LOOPBACK, Door, new_tokens, tokens_in

STOP_SECONDS = 1  # that answers may take still once it is stopped
BACKLOG, LAST_PORT = 1024, 65535
SWITCH_SECONDS = 0.0005  # for which a thread that computes keeps those waiting that answer


class _Server(uvicorn.Server):
    """Lets streams go before it waits for answers, and closes the files before it ends."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens, and watches the files."""
        import asyncio

        await super().startup(sockets)
        self._hub.start(asyncio.get_running_loop())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends in order."""
        self._hub.end()
        await super().shutdown(sockets)
        self._hub.close()


def serve(
    named: Sequence[Path],
    *,
    host: str = LOOPBACK[0],
    port: int = 8765,
    read_only: bool = False,
    certfile: Path | None = None,
    keyfile: Path | None = None,
    token_file: Path | None = None,
    say: Callable[[Plain], None] | None = None,
) -> None:
    """Serves studies and runs until it is stopped; prints where, or has it said as a record."""
    _check_tls(certfile, keyfile)
    _allow_many_files()
    sys.setswitchinterval(SWITCH_SECONDS)  # whoever tells asks the disk and the file often, and
    # would wait each time for a move that is being made to let go
    tokens = new_tokens() if token_file is None else tokens_in(token_file)
    with _listening(host, port) as listening:
        number = int(listening.getsockname()[1])
        door = Door(host, number, certfile is not None, tokens)
        hub = Hub(named, door, read_only)
        if host not in LOOPBACK and certfile is None:
            print(_open_words(host), file=sys.stderr)
        (say or _print_addresses)(
            {"address": door.address, "token": tokens.full, "reading_token": tokens.reading}
        )
        sys.stdout.flush()
        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        config = uvicorn.Config(
            application(hub),
            http=partial(Connection, door, {}),  # type: ignore[arg-type]
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.ERROR,  # what strangers send is none
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
            ssl_certfile=certfile,
            ssl_keyfile=keyfile,
        )
        _Server(config, hub).run([listening])


def _print_addresses(where: Plain) -> None:
    token, reading = (quote(where[key], safe="") for key in ("token", "reading_token"))
    print(f"{where['address']}#token={token}")
    print(f"To read alone: {where['address']}#token={reading}")


def _open_words(host: str) -> str:
    return (
        f"warning: {host} can be reached by other machines, and without --certfile whoever is on "
        "the way reads the token and all data."
    )


def _check_tls(certfile: Path | None, keyfile: Path | None) -> None:
    """Raises where a certificate cannot be used."""
    if certfile is None:
        if keyfile is not None:
            raise InputError("--keyfile needs --certfile.")
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certfile, keyfile)
    except (OSError, ssl.SSLError) as wrong:
        raise InputError(f"{certfile} cannot be used: {wrong}.") from None


def _allow_many_files() -> None:
    """As many open files as the system allows: each study in use takes some, each client one."""
    try:
        import resource
    except ImportError:  # there is no such limit here
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # of some systems the most is more than they allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    if not 0 <= port <= LAST_PORT:
        raise InputError(f"--port takes a number from 0 to {LAST_PORT}, got {port}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(BACKLOG)
    except OSError as wrong:
        found.close()
        why = getattr(wrong, "strerror", None) or wrong
        no_host = isinstance(wrong, socket.gaierror) or wrong.errno == errno.EADDRNOTAVAIL
        other = (
            "this computer has no such address: give another --host"
            if no_host
            else ("give another --port")
        )
        raise InputError(f"{host}:{port} cannot be listened on ({why}): {other}.") from None
    return found
