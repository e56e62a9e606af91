"""`docs/serve.md`: what it shows on a console is what the server and its clients print.

`python tests/docs/test_serve_doc.py` writes the output anew.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "serve.md"
CLIENTS = ROOT / "examples" / "clients"
PORT, SERVE = "8765", "recoup serve "
TOKEN = re.compile(r"#token=\S+")
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from console import BLOCK, alike, run, steps, tidy, write_scripts  # noqa: E402
from program import recoup  # noqa: E402
from serving import PATIENT, Server  # noqa: E402

TEXT = PAGE.read_text()


def session(text, folder):
    """The commands of a page, each with what is written below it and what it prints now."""
    write_scripts(text, folder)
    server = None
    try:
        for command, written in steps(text):
            if command.startswith(SERVE):
                server = Server(folder, *command.removeprefix(SERVE).split(), program=PATIENT)
                os.environ["RECOUP_TOKEN"] = server.token
                write_scripts(text.replace(f":{PORT}/", f":{server.port}/"), folder)
                printed = "\n".join(server.printed) + "\n"
            else:
                port = str(server.port) if server else PORT
                printed = run(command.replace(PORT, port), folder)
            printed = printed.replace(str(server.port), PORT) if server else printed
            yield command, written, tidy(printed)
    finally:
        if server is not None:
            server.kill()


def masked(text):
    """A text without its tokens, which are others each time."""
    return TOKEN.sub("#token=", tidy(text))


@pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("jq")), reason="curl or jq is not installed"
)
def test_commands_print_what_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("RECOUP_TOKEN", "")
    told = []
    for command, written, printed in session(TEXT, tmp_path):
        assert alike(masked(printed), masked(written)), f"$ {command}\n{printed}"
        told.append(command.split()[0])
    assert {"recoup", "curl", "python"} <= set(told)


def test_every_option_that_the_page_names_is_one():
    shown = "".join(recoup(word, "--help").stdout for word in ("serve", "work"))
    ours = TEXT.replace("openssl req", "").replace("--cacert", "")
    for option in set(re.findall(r"`[^`\n]*?(--[a-z][a-z-]+)", ours)):
        others = recoup("study", "show", "--help").stdout + "--param --dim --format"
        assert option in shown + others, option


def test_every_client_is_on_the_page_and_no_longer_than_it_says():
    files = sorted(path.name for path in CLIENTS.iterdir())
    assert sorted(set(re.findall(r"examples/clients/(\w+\.\w+)", TEXT))) == files
    assert len(files) == 6
    for name in files:
        lines = (CLIENTS / name).read_text().splitlines()
        assert len(lines) <= 30, name
        assert any("same key" in line for line in lines), name


def test_every_address_of_the_server_is_on_the_page():
    from recoup.serve.endpoints import ENDPOINTS

    named = set(re.findall(r"`((?:GET|POST|PUT|DELETE) [^`?]*)[?`]", TEXT))
    for row in ENDPOINTS:
        path = row.path.replace("{name}", "NAME").replace("{id}", "ID")
        for root in ("/v1/studies/NAME", "/v1/runs/NAME"):
            path = path.removeprefix(root).removeprefix("/") if path.startswith(root) else path
        shown = f"{row.method} {path}"
        assert shown in named or row.method == "DELETE", shown


def rewritten(text, folder):
    """The page with what its commands print now."""
    printed = iter(session(text, folder))

    def block(match):
        lines = []
        for _ in re.split(r"^\$ ", match.group(1), flags=re.M)[1:]:
            command, _, output = next(printed)
            lines.append(f"$ {command}\n{output}")
        return "```console\n" + "\n".join(lines) + "```"

    found = BLOCK.sub(block, text)
    next(printed, None)
    return found


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(rewritten(TEXT, folder))
