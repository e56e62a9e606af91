"""The program: `recoup`, or `python -m recoup`."""

import gc
import os
import signal
import sys
from typing import Any


def main() -> None:
    """Runs the program; Ctrl-C ends it at once, but where a command has something to finish."""
    signal.signal(signal.SIGINT, _quit)  # before anything slow is imported
    gc.set_threshold(50_000, 10, 10)  # imports and tracing make many objects and little garbage
    if sys.argv[1:2] in (["study"], ["serve"]):
        # Before NumPy is imported: matrices of a study are small, and threads for them cost more
        # than they save.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from recoup.cli.main import main as run

    run()


def _quit(*_: Any) -> None:
    if os.isatty(2):
        os.write(2, b"\x1b[?25h\n")  # a progress bar hides the cursor
    os.write(2, b"recoup: stopped.\n")
    os._exit(130)


if __name__ == "__main__":
    main()
