"""`recoup serve`: studies and runs by HTTP."""

from pathlib import Path
from typing import Annotated

from recoup.checks import not_installed
from recoup.cli.app import JsonOption, app, argument, examples, option, print_json
from recoup.cli.parsing import whole_option

SERVE_EXAMPLES = examples(
    "serve robot.db",
    "serve studies/ --port 8000 --token-file ~/.recoup-token",
    "serve robot.db --host 0.0.0.0 --certfile robot.pem   (other machines too)",
    "serve robot.db --read-only",
    "serve robot.db --port 0 --json",
)
EXTRA = ("starlette", "uvicorn")


@app.command(epilog=SERVE_EXAMPLES)
def serve(
    named: Annotated[
        list[Path], argument("Studies, runs, or directories of them.", "STUDY|RUN|DIRECTORY...")
    ],
    host: Annotated[str, option("The address to listen on; others than loopback: see TLS.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, whole_option("The port; 0: any that is free.")] = 8765,
    read_only: Annotated[bool, option("--read-only", "Nothing is written.")] = False,
    certfile: Annotated[Path | None, option("A certificate: then it is HTTPS.")] = None,
    keyfile: Annotated[Path | None, option("Its key, where that lies in another file.")] = None,
    token_file: Annotated[
        Path | None,
        option("A file with both tokens, a line each; made, if it is not there."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve studies and runs as a live page, and ask and tell for robots, by HTTP."""
    try:
        from recoup.serve.serving import serve as run
    except ImportError as wrong:
        if (wrong.name or "").partition(".")[0] not in EXTRA:
            raise
        raise not_installed("this needs starlette and uvicorn", "serve") from None
    tls = {"certfile": certfile, "keyfile": keyfile, "token_file": token_file}
    say = print_json if as_json else None
    run(named, host=host, port=port, read_only=read_only, say=say, **tls)
