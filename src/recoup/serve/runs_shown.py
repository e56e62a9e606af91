"""Runs of `recoup train`, as their files say: what they are, their curves, their films."""

from dataclasses import fields
from http import HTTPStatus
from pathlib import Path

from starlette.responses import FileResponse, Response

from recoup.core.types import Given, Plain
from recoup.serve.call import Call, done
from recoup.serve.problems import Problem
from recoup.serve.served import Served

VIDEO = "policy.mp4"  # as `recoup render` calls it, which is slow to import, as all of runs is


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
        state = {"finished": run.finished, "film": (folder / VIDEO).is_file()}
        return {"name": served.name, "study": served.name, **run.summary(), **state}

    return await done(served.judges(lambda _: read()))


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
    _, folder = run_in(call)
    if not (folder / VIDEO).is_file():
        raise Problem(HTTPStatus.NOT_FOUND, f"no film was made of {folder.name}.")
    return FileResponse(folder / VIDEO, media_type="video/mp4")
