"""A real `recoup serve`, a process of its own, on a port that stays the same when it is killed."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from waiting import LIMIT, until

PROGRAM = "from recoup.__main__ import main; main()"
PATIENT = f"""from recoup.serve import served, writing_trials
writing_trials.ASK_SECONDS = served.CLOSE_SECONDS = 600
{PROGRAM}"""


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Server:
    """`recoup serve PATHS...`; `kill()` and `start()` as often as one likes.

    By `PATIENT` who asks waits for the move, and Ctrl-C for what reads, however slow the machine
    is.
    """

    def __init__(self, folder, *paths, words=(), program=PROGRAM):
        self.folder, self.port, self.program = Path(folder), free_port(), program
        self.words = [*map(str, paths), *words, "--port", str(self.port)]
        self.words += ["--token-file", str(self.folder / "tokens")]
        self.errors = self.folder / f"serve-{self.port}.log"
        self.process = None
        self.start()

    def start(self):
        with self.errors.open("a") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", self.program, "serve", *self.words],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "RECOUP_TRACEBACK": ""},
            )
        self.printed = [self.process.stdout.readline().strip() for _ in range(2)]
        if not all(self.printed):
            self.kill()
            raise AssertionError(self.errors.read_text())
        self.address, self.read_address = (line.split()[-1] for line in self.printed)
        self.token = token_of(self.address)
        self.url = self.address.partition("#")[0]
        self.host = urlsplit(self.url).hostname
        until(self.listens, self.errors.read_text)
        return self

    def study(self, name):
        """The address of a study, as clients take it."""
        return f"{self.url}v1/studies/{name}"

    def listens(self):
        with socket.socket() as trying:
            return trying.connect_ex((self.host, self.port)) == 0

    def kill(self):
        """SIGKILL, and nothing of it is left."""
        self.process.kill()
        self._ended()

    def stop(self):
        """Ctrl-C."""
        if self.process.poll() is None:
            self.process.send_signal(2)
        return self._ended()

    def _ended(self):
        status = self.process.wait(LIMIT)
        self.process.stdout.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


def token_of(address):
    return parse_qs(urlsplit(address).fragment)["token"][0]
