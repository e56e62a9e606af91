"""Whoever speaks of a study says the same: Python, commands, JSON, notebooks, pages.

Forty studies of many kinds; of each, everything that is printed is read again and compared.
"""

import json
import re
from contextlib import suppress
from html.parser import HTMLParser
from math import isclose, isnan, nan

import numpy as np
import pytest
from program import recoup

from recoup import Study, Trajectory
from recoup.checks import InputError
from recoup.report import study_page as pages
from recoup.study import study as studies
from recoup.study.moves.settling import MoveMaker
from recoup.study.views.snapshot import Snapshot
from recoup.study.voice.sentences import apart, percent

pytestmark = pytest.mark.usefixtures("few_rehearsals")

NAMED = {"stiffness": (50, 2000, "log"), "damping": (0, 1), "fingers": (2, 9, "int"), "bias": None}
CHOICES = {"stiffness": (50, 2000, "log"), "gripper": ["soft", "hard", "vacuum"], "bias": None}
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
WORTH = rf"({NUMBER})(?: \(95 %: ({NUMBER}) to ({NUMBER})\))?"
FORECAST = re.compile(r"\b(should|would|may) (gain|lower)|expect more:|gains? no more", re.I)


def bowl(theta):
    """Best where every parameter is 0.5."""
    return -float(np.sum((np.asarray(theta, float) - 0.5) ** 2))


def near(trial):
    """The same of named parameters, on their own scales."""
    p = trial.params
    miss = np.log(p["stiffness"] / 400) ** 2 + 4 * (p["damping"] - 0.7) ** 2
    return -float(miss + 0.1 * (p["fingers"] - 4) ** 2 + p["bias"] ** 2)


def gripped(trial):
    """The same with another top for each gripper."""
    p = trial.params
    miss = np.log(p["stiffness"] / 400) ** 2 + (p["bias"] - trial.theta[1] / 2) ** 2
    return -float(miss) + float(p["gripper"] == "hard") + 0.2 * noise(trial)


def noise(trial):
    return float(np.random.default_rng(trial.id).normal())


def made(path, batches=3, value=lambda t: bowl(t.theta) + 0.3 * noise(t), fails=(), **settings):
    """A study that was told so many batches; those of `fails` have failed."""
    settings.setdefault("batch", 6)
    if "params" not in settings:
        settings.setdefault("dim", 2)
    study = Study.open(path, **settings)
    for _ in range(batches):
        for trial in study.ask(settings["batch"]):
            why = {"failed": f"slipped at {trial.id}"} if trial.id in fails else {}
            study.tell(trial.id, **(why or {"value": value(trial)}))
    return study


def by_hand(path):
    """With a theta of one's own, trials of the mean, some that wait and some in line."""
    study = made(path, batches=2, params=NAMED, value=near)
    study.enqueue({"stiffness": 400, "damping": 0.7, "fingers": 4, "bias": 0.0})
    for trial in study.ask() + study.ask(2, at="mean"):
        study.tell(trial.id, near(trial))
    study.ask(3)
    study.enqueue({"stiffness": 300, "damping": 0.5, "fingers": 3, "bias": 0.1})
    return study


def of_the_mean(path, values):
    """With trials of the mean policy that are enough by themselves."""
    study = made(path)
    for trial, value in zip(study.ask(len(values), at="mean"), values, strict=True):
        how = {"failed": "it fell"} if value is None else {"value": value}
        study.tell(trial.id, **how)
    return study


def amended(path, **how):
    study = made(path, fails=(3,))
    study.amend(2, -7.5, why="read off the wrong line")
    study.amend(5, drop="the sensor was loose")
    study.amend(6, failed="the gripper opened")
    return study


def imported(path):
    study = made(path, batches=1)
    rng = np.random.default_rng(3)
    theta = rng.normal(0.3, 0.8, (20, 2))
    study.import_samples(theta, [bowl(x) for x in theta], 0.3, 0.8)
    return study


def forked(path, **changes):
    old = path.with_name("old.db")
    with made(old, batches=3, params=NAMED, value=near) as study:
        return study.fork(path, **changes)


def in_actions(path):
    study = Study.open(path, dim=2, method="iw-reinforce-ob", horizon=3, batch=50, std=0.5)
    rng = np.random.default_rng(1)
    for trial in study.ask(12):
        features, actions = rng.normal(size=(3, 2)), rng.normal(size=(3, 1))
        study.tell(trial.id, trajectory=Trajectory(features, actions, rng.normal(size=3), 3))
    return study


def leased(path):
    study = made(path, batches=2)
    study.ask(3, lease=1e-6)
    return study


def limited(path, batches=5, batch=6, **settings):
    """With a number beside each return, and a limit on it that returns lead beyond."""
    limits = {"force": "<60", "room": [">=-90", "<999"]}
    settings = settings if "params" in settings else {"dim": 2, **settings}
    study = Study.open(path, batch=batch, limits=limits, within=0.9, **settings)
    sign = study.opened.sign
    for _ in range(batches):
        for trial in study.ask(batch):
            value = -sign * float(np.sum((trial.theta - [3, 0]) ** 2))
            force = 50 + 10 * trial.theta[0] + noise(trial)
            study.tell(trial.id, value, also={"force": force, "room": -trial.theta[1] * 20})
    return study


KINDS = {
    "nothing told": lambda path: made(path, batches=0),
    "nothing told, named": lambda path: made(path, batches=0, params=NAMED),
    "asked, not told": lambda path: made(path, 0).ask(3) and Study.open(path),
    "one result": lambda path: made(path, batches=1, batch=1),
    "before the first move": lambda path: _some(path, 5, batch=20),
    "enough before the first move": lambda path: _some(path, 19, batch=20),
    "one parameter": lambda path: made(path, dim=1),
    "two parameters": made,
    "five parameters": lambda path: made(path, dim=5, batch=10),
    "twelve parameters": lambda path: made(path, batches=4, dim=12, batch=8),
    "twelve names": lambda path: made(
        path,
        batches=4,
        params={f"gain_{i}": (0.0, 1.0 + i) for i in range(12)},
        value=lambda t: bowl(t.theta),
    ),
    "bounds, scales, whole numbers": lambda path: made(path, params=NAMED, value=near),
    "choices": lambda path: made(path, batches=4, params=CHOICES, value=gripped),
    "choices, nothing told": lambda path: made(path, batches=0, params=CHOICES),
    "nothing but choices, costs": lambda path: made(
        path,
        params={"gripper": ["soft", "hard"], "shape": ["round", "flat", "long"]},
        value=lambda t: float(t.theta[0] + t.theta[1]) + 0.1 * noise(t),
        direction="minimize",
    ),
    "six batches": lambda path: made(path, batches=6),
    "six gains, tried 65 times": lambda path: made(
        path,
        batches=13,
        batch=5,
        params={f"gain_{i}": (0.01, 100.0, "log") for i in range(6)},
        value=lambda t: -float(np.sum(np.log(t.theta) ** 2)) / 5 + noise(t),
    ),
    "costs": lambda path: made(path, value=lambda t: -bowl(t.theta), direction="minimize"),
    "full covariance": lambda path: made(path, batches=4, dim=3, family="full"),
    "mis-pgpe-ob": lambda path: made(path, method="mis-pgpe-ob"),
    "pgpe": lambda path: made(path, method="pgpe"),
    "pgpe-ob": lambda path: made(path, method="pgpe-ob"),
    "niw-pgpe-ob": lambda path: made(path, method="niw-pgpe-ob"),
    "iw-pgpe-ob": lambda path: made(path, method="iw-pgpe-ob"),
    "tiw-pgpe-ob": lambda path: made(path, method="tiw-pgpe-ob"),
    "mirrored": lambda path: made(path, method="mis-pgpe-ob", mirrored=True),
    "failures left out": lambda path: made(path, fails=(2, 5, 9, 11, 14)),
    "failures as the worst": lambda path: made(path, fails=(2, 5, 9), failure="worst"),
    "failures as a number": lambda path: made(path, fails=(2, 5, 9), failure=-20.0),
    "nothing but failures": lambda path: made(path, batches=1, fails=range(99)),
    "equal returns": lambda path: made(path, value=lambda t: 3.0),
    "one success": lambda path: made(path, batches=4, value=lambda t: float(t.id == 7)),
    "huge returns": lambda path: made(path, value=lambda t: 1e300 * bowl(t.theta)),
    "small returns": lambda path: made(path, value=lambda t: 1e-300 * bowl(t.theta)),
    "far from nought": lambda path: made(path, value=lambda t: 1e6 + bowl(t.theta)),
    "own thetas and the mean": by_hand,
    "five trials of the mean": lambda path: of_the_mean(path, [-0.1, -0.2, -0.15, -0.3, -0.12]),
    "the mean fails": lambda path: of_the_mean(path, [None, -0.2]),
    "amended and dropped": amended,
    "imported samples": imported,
    "forked": lambda path: forked(path, method="tiw-pgpe-ob", batch=4),
    "forked with other bounds": lambda path: forked(path, params=["stiffness=50:5000:log"]),
    "leases that have run out": leased,
    "in actions": in_actions,
    "limits": limited,
    "limits, costs": lambda path: limited(path, direction="minimize"),
    "limits and choices": lambda path: limited(path, params={"x": None, "grip": ["a", "b", "c"]}),
    "beyond a limit": lambda path: limited(path, batches=2, mean=[4.0, 0.0]),
    "limits, too little told": lambda path: limited(path, batches=1, batch=4),
}
EACH = ("two parameters", "mis-pgpe-ob")  # of which every door computes for itself


def _some(path, results, batch):
    study = made(path, batches=0, batch=batch)
    for trial in study.ask(results):
        study.tell(trial.id, bowl(trial.theta))
    return study


class Text(HTMLParser):
    """The text of a page, cell by cell."""

    def __init__(self, content):
        super().__init__()
        self.cells = []
        self.feed(content)

    def handle_data(self, data):
        if data.strip():
            self.cells.append(" ".join(data.split()))


class Doors:
    """Everything that is said of a study."""

    def __init__(self, path, monkeypatch):
        monkeypatch.setenv("COLUMNS", "300")
        with Study.open(path, read_only=True) as study:
            self.snapshot = study.snapshot()
            self.recommend, self.evaluate = _or_none(study.recommend), _or_none(study.evaluate)
            self.counts, self.best = study.counts(), study.best
            self.params = study.mean_policy
            self.predict = _or_none(lambda: study.predict(study.mean_policy))
            self.notebook = " ".join(Text(study._repr_html_()).cells)
        monkeypatch.setattr(pages, "drawn", lambda figure: "")  # the one part that takes long
        monkeypatch.setattr(Study, "plot", lambda study: None)
        written = pages.write_study_report(path, path.with_suffix(".html")).read_text()
        self.page = " ".join(Text(written).cells)
        self.show, self.shown = said("show", path), said("show", path, "--json")
        self.recommended = said("recommend", path), said("recommend", path, "--json")
        self.evaluated = said("evaluate", path), said("evaluate", path, "--json")


def said(command, path, *options):
    """What a command prints: text, or what JSON holds; None where it is refused."""
    done = recoup("study", command, path.name, *options, cwd=path.parent)
    if options:
        return json.loads(done.stdout) if not done.returncode else None
    return " ".join(done.stdout.split()) if not done.returncode else None


def _or_none(of):
    with suppress(InputError):
        return of()
    return None


def numbers(text, of):
    """An expected return as it is said in a text, with its interval: floats, or None; once."""
    found = re.findall(rf"The expected (?:return|cost) of {of} is (not known|{WORTH})", text)
    assert len(found) == 1, (of, text)
    return [float(x) if x and x != "not known" else None for x in found[0][1:]]


def digits(*values):
    """Numbers as they are shown: of an interval, with as many digits as tell its ends apart."""
    known = [nan if x is None else x for x in values]
    return [None if isnan(x) else float(text) for x, text in zip(known, apart(*known), strict=True)]


def once(function):
    """The same function, computed once for each state of a study: nine doors ask for it."""
    known = {}

    def called(opened, *rest):
        with opened.store.reading():
            key = opened.store.version(), repr([x for x in rest if not isinstance(x, MoveMaker)])
            if key not in known:
                known[key] = function(opened, *rest)
            return known[key]

    return called


@pytest.fixture(scope="module", params=KINDS)
def doors(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("voice") / "robot.db"
    made_so = KINDS[request.param](path)
    made_so.close()
    with pytest.MonkeyPatch.context() as monkeypatch:
        if request.param not in EACH:
            monkeypatch.setattr(studies, "recommend", once(studies.recommend))
            monkeypatch.setattr(studies, "evaluate", once(studies.evaluate))
        yield Doors(path, monkeypatch)


def test_there_are_forty_kinds():
    assert len(KINDS) >= 40


def test_the_mean_policy_has_one_expected_return(doors):
    now, texts = doors.snapshot, [doors.show, doors.page, doors.notebook]
    if doors.recommend is None:
        assert doors.recommended == (None, None)
        assert now.recommendation is None
        assert "not known" in now.of_mean_policy
        assert all(now.of_mean_policy.partition(": ")[0] in text for text in texts)
        return
    told = doors.recommend
    want = digits(told.of_mean.value, *told.of_mean.interval)
    for text in (*texts, doors.recommended[0], doors.recommend.words, now.of_mean_policy):
        assert numbers(text, "the mean policy") == want
        assert now.of_mean_policy in text
    of_it = digits(told.expected, *told.interval)
    for found in (doors.recommended[1], doors.shown["recommendation"]):
        assert digits(found["of_mean"]["value"], *found["of_mean"]["interval"]) == want
        assert digits(found["expected"], *found["interval"]) == of_it
    assert told.deploys != "mean" or want == of_it
    plain = doors.shown["expected_return_of_mean_policy"]
    assert digits(plain["mean"], *plain["interval"]) == want


def test_a_prediction_at_the_mean_is_that_of_the_mean_policy(doors):
    """And so are the chances of failing, and of keeping limits."""
    if doors.recommend is None or doors.predict is None:  # too few results, or action space
        return
    told, found = doors.recommend, doors.predict
    want = [told.of_mean.value, *told.of_mean.interval]
    np.testing.assert_array_equal([found.expected, found.low, found.high], want)
    if told.deploys != "mean":
        return
    np.testing.assert_array_equal(found.failing[:3], told.failing[:3])
    chances = ([row[1:4] for row in rows.limits] for rows in (found, told))
    np.testing.assert_array_equal(*chances)


def test_a_draw_has_one_expected_return(doors):
    now, of = doors.snapshot, "a draw of the newest distribution"
    if doors.evaluate is None:
        assert doors.evaluated == (None, None)
        assert now.evaluation is None
        return
    want = digits(doors.evaluate.mean, *doors.evaluate.interval)
    assert numbers(doors.evaluated[0], of) == numbers(now.of_a_draw, of) == want
    found = doors.evaluated[1]
    assert digits(found["mean"], found["low"], found["high"]) == want
    plain = doors.shown["expected_return_of_a_draw"]
    assert digits(plain["mean"], *plain["interval"]) == want
    for text in (doors.show, doors.page, doors.notebook):
        if "takes a while" in text:  # where JAX would have to compile, `evaluate` is named
            assert numbers(text, of) == [None] * 3
        elif doors.recommend is not None:
            assert numbers(text, of) == want
            assert now.of_a_draw in text


def test_the_two_are_never_taken_for_each_other(doors):
    """No text has an expected return that does not say of what."""
    for text in (doors.show, doors.page, doors.notebook, doors.recommended[0], doors.evaluated[0]):
        for _, of in re.findall(r"expected (return|cost)(.{0,20})", text or ""):
            whose = r" of (the mean policy|a draw of|the mean after|trial|the start)"
            assert re.match(whose, of), (of, text)
        assert "of the distribution that moved last" not in (text or "")


def assert_has(text, params):
    """A text has every parameter, if there is one."""
    for name, value in params.items():
        if isinstance(value, str):
            assert text is None or re.search(rf"{name} (?:│ )?{value} ", text), (name, text)
        else:
            shown = re.findall(rf"{name} (?:│ )?({NUMBER})", text or f"{name} {value:.5g}")
            assert any(isclose(float(x), value, rel_tol=1e-4) for x in shown), (name, text)


def test_what_to_deploy_is_one_vector(doors):
    """And the mean policy is another, where it is not that."""
    now = doors.snapshot
    assert doors.shown["deploy"] == now.params
    assert doors.shown["mean_policy"] == now.mean_policy
    assert list(np.asarray(doors.params)) == list(now.mean_policy.values())
    assert [row.value for row in now.distribution] == list(now.mean_policy.values())
    assert doors.recommend is None or doors.recommend.params == now.params
    if doors.recommend is not None:
        assert doors.recommended[1]["params"] == now.params
        assert doors.recommended[1]["theta"] == list(now.params.values())
    for text in (doors.recommended[0], doors.page):
        assert_has(text, now.params)
    for text in (doors.show, doors.notebook):
        assert_has(text, now.mean_policy)


def test_there_is_one_verdict_and_one_forecast(doors):
    now = doors.snapshot
    if doors.recommend is None:
        assert now.verdict is None
        assert not FORECAST.search(f"{doors.show} {doors.page} {doors.notebook}")
        return
    verdicts = {now.verdict, doors.recommend.verdict, doors.shown["verdict"]}
    assert verdicts == {doors.recommended[1]["verdict"]}
    words = doors.recommend.words
    for text in (doors.show, doors.page, doors.notebook, doors.recommended[0]):
        assert text.count(words) == 1
        assert not FORECAST.search(text.replace(words, ""))
    assert words == now.advice[0] == doors.shown["advice"][0] == doors.recommended[1]["words"]


def test_everybody_counts_the_same(doors):
    now = doors.snapshot
    said = re.findall(r"(\d+) pending, (\d+) ok, (\d+) failed", f"{doors.show} {doors.page}")
    counted = [now.counts.pending, now.counts.ok, now.counts.failed]
    assert said == [tuple(map(str, counted))] * 2
    assert doors.counts == dict(zip(("pending", "ok", "failed"), counted, strict=True))
    assert doors.shown["counts"] == now.counts._asdict()
    assert [doors.shown[key] for key in ("pending", "ok", "failed")] == counted
    assert now.failures.number == now.counts.failed - now.counts.dropped
    assert len(now.waiting) == now.counts.pending


def test_there_is_one_best_trial(doors):
    now, best = doors.snapshot, doors.best
    shown = [
        re.search(
            rf"best (?:│ )?(none yet|none within the limits yet|trial (\d+): ({NUMBER}))", text
        )
        for text in (doors.show, doors.notebook, doors.page)
    ]
    if best is None:
        assert now.best is None
        none = "none within the limits yet" if doors.shown.get("broken") else "none yet"
        assert [found[1] for found in shown] == [none] * 3
        return
    assert (now.best[0].id, now.best[1]) == (best[0].id, best[1])
    assert (doors.shown["best"]["id"], doors.shown["best"]["return"]) == (best[0].id, best[1])
    assert {(found[2], found[3]) for found in shown} == {(str(best[0].id), f"{best[1]:.6g}")}


def test_a_limit_is_kept_as_surely_whoever_says_so(doors):
    """And where it is not kept surely enough, nobody says that the mean is the one to deploy."""
    kept = doors.recommend.limits if doors.recommend else []
    texts = [doors.show, doors.notebook, doors.page, doors.recommended[0] or ""]
    if not kept:
        assert all("A rollout of it keeps" not in text for text in texts)
        return
    for row in kept:
        sentence = (
            f"A rollout of it keeps {row.limit} with a chance of {percent(row.chance)} (95 %: "
        )
        assert [sentence in text for text in texts] == [not isnan(row.chance)] * 4, row.limit
    for found in (doors.shown, doors.recommended[1]):
        assert [row["limit"] for row in found["limits"]] == [row.limit for row in kept]
        said = [row["chance"] for row in found["limits"]]
        assert said == [None if isnan(row.chance) else row.chance for row in kept]
    surely = all(row.chance >= 0.9 for row in kept)
    for text in texts:
        assert ("The mean policy is the one to deploy" in text) == surely
        assert ("Do not deploy the mean policy" in text) == (not surely)
    assert surely or doors.snapshot.verdict == "go on"


def test_all_of_it_is_of_one_version_and_plain(doors):
    now = doors.snapshot
    for found in (doors.shown, doors.recommended[1], doors.evaluated[1]):
        assert found is None or found["version"] == now.version
    plain = json.loads(json.dumps(now.plain(), allow_nan=False))
    same = {key: value for key, value in doors.shown.items() if key in plain and key != "path"}
    here = {key: value for key, value in plain.items() if key in same}
    for words in ("advice", "expected_return_of_mean_policy", "expected_return_of_a_draw"):
        same.pop(words), here.pop(words)  # a path in a sentence is as it was given
    assert here == same
    assert isinstance(now, Snapshot)
