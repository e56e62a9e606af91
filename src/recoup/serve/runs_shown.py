"""Runs of `recoup train`, as their files say: what they are, their curves, their films."""

from dataclasses import fields
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, Response

from recoup.core.types import Given, Plain
from recoup.serve.call import Call, done
from recoup.serve.problems import Problem
from recoup.serve.served import Served

if TYPE_CHECKING:
    from recoup.runs.run import Run

VIDEO, STRIP = "policy.mp4", "strip.png"  # as `recoup render` has them, which is slow to import


def run_in(call: Call) -> tuple[Served, Path]:
    """The run that a request names."""
    name = call.request.path_params["name"]
    found = call.hub.served.get(name)
    if found is None or found.run is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no run {name!r} here.")
    return found, found.run


async def run_now(call: Call) -> Given:
    """What a run is, and what it is worth."""
    served, folder = run_in(call)

    def read() -> Plain:
        from recoup.runs.run import load

        run = load(folder)
        there = [name for name in (VIDEO, STRIP) if _is_there(folder / name)]
        state = {
            "finished": run.finished,
            "outdated": run.outdated,
            "film": VIDEO in there,
            "strip": STRIP in there,
            "filmed_before": [name for name in there if _is_of_before(folder / name, run)],
        }
        return {"name": served.name, "study": served.name, **run.summary(), **state}

    return await done(served.judges(lambda _: read()))


def _is_there(path: Path) -> bool:
    """Whether a run has this file; what a link leads to was not named, and is not served."""
    return path.is_file() and not path.is_symlink()


def _is_of_before(path: Path, run: "Run") -> bool:
    """Whether it shows a policy that is not the newest."""
    from recoup.runs.render import is_of_before

    return is_of_before(path, run)


async def curve_now(call: Call) -> Given:
    """Its learning curve, and what each move was made of, as columns."""
    served, folder = run_in(call)
    return await done(served.judges(lambda _: _curve(folder)))


def _curve(folder: Path) -> Plain:
    from recoup.runs.history import HistoryRow
    from recoup.runs.run import load

    run = load(folder)
    names = [field.name for field in fields(HistoryRow)]
    columns = {key: [getattr(row, key) for row in run.history] for key in names}
    mean, stderr = columns.pop("return_curve"), columns.pop("return_curve_stderr")
    return {**columns, "mean": mean, "stderr": stderr}


async def film_now(call: Call) -> Response:
    """The film of its policy, if one was made."""
    return _file(call, VIDEO, "film", "video/mp4")


async def strip_now(call: Call) -> Response:
    """The pictures of that film in a row."""
    return _file(call, STRIP, "film strip", "image/png")


def _file(call: Call, name: str, what: str, kind: str) -> Response:
    _, folder = run_in(call)
    if not _is_there(folder / name):
        raise Problem(HTTPStatus.NOT_FOUND, f"no {what} was made of {folder.name}.")
    return FileResponse(folder / name, media_type=kind)
