"""What a study's results say of a candidate: what `recoup study evaluate` and its like say."""

from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.responses import Response

from recoup.core.types import Given, Plain
from recoup.serve.call import Call, done, judging
from recoup.serve.problems import Problem
from recoup.serve.writing_trials import in_order
from recoup.study.study import Study
from recoup.study.views.snapshot import of_a_draw
from recoup.study.voice.sentences import CANDIDATE, DRAW


async def evaluate(call: Call) -> Given:
    """The expected return of a distribution, the newest unless given, at no rollout.

    `quick`: by weights alone, by the thread that reads, so that sliders never wait for a model.
    """
    if call.body["quick"]:
        return await done(call.served.reads(lambda study: _quickly(study, call)))
    return await exactly(call)


def _quickly(study: Study, call: Call) -> Plain:
    mean, std = (_candidate(study, call.body[key]) for key in ("mean", "std"))
    found = study.weighed(mean, std)
    if found is None:
        said = "no value by weights alone: this study's distributions are compiled."
        raise Problem(HTTPStatus.CONFLICT, said)
    return {"value": found.value, "ess": found.ess, "unseen": found.unseen}


def _evaluated(study: Study, call: Call) -> Plain:
    """What `recoup study evaluate` says."""
    mean, std = (_candidate(study, call.body[key]) for key in ("mean", "std"))
    found = study.evaluate(mean, std)
    of = DRAW if mean is None and std is None else CANDIDATE
    said = of_a_draw(found, goal=study.opened.goal, of=of)
    return {**found._asdict(), "sentence": said}


exactly = judging(_evaluated)


def _candidate(study: Study, values: Plain | None) -> Given:
    """Means or deviations by name, as the study takes them."""
    if not values:
        return None
    labels, given = list(study.opened.labels), in_order(study, values)
    if isinstance(given, dict) and not study.names:
        missing = [name for name in labels if name not in values]
        said = f"give all of {', '.join(labels)}; {missing[0]} is missing." if missing else ""
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, said or f"they are {', '.join(labels)}.")
    return given


def predict(study: Study, call: Call) -> Plain:
    """The expected return of parameters; those that are not named stay at the mean policy."""
    found = study.predict(call.body["params"])
    return {**found.plain(), "sentence": found.words}


def recommend(study: Study, call: Call) -> Plain:
    """What to deploy, what it is worth, and whether to go on."""
    found = study.recommend(worth=call.body["worth"], budget=call.body["budget"])
    mean = study.opened.params(study.opened.in_units(study.mean))
    return {**found.plain(), "mean_policy": mean, "sentences": [found.words]}


def suggest(study: Study, call: Call) -> Plain:
    """The candidate with the best lower bound within what the results cover; or why none."""
    found = study.suggest()
    if found.prediction is None:
        return {"params": None, "low": None, "value": None, "sentence": found.words}
    one = found.prediction
    ends = {"low": one.low, "high": one.high, "value": one.expected}
    return {"params": one.params, **ends, "sentence": found.words}


def report(study: Study, call: Call) -> Response:
    """The page of `recoup report`, to be kept."""
    from recoup.report.study_page import write_study_report  # draws

    with TemporaryDirectory(prefix="recoup") as folder:
        out = Path(folder) / "report.html"
        content = write_study_report(call.served.path, out).read_bytes()
    how = {"Content-Disposition": 'attachment; filename="report.html"'}
    return Response(content, headers=how, media_type="text/html")
