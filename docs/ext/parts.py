"""Which names stand on which page of the reference, in the order of the page."""

from typing import NamedTuple


class Part(NamedTuple):
    """One page of the reference: its names stand in `recoup`, or where their path says."""

    slug: str
    title: str
    intro: str
    names: tuple[str, ...]
    start: str = "import recoup"  # what every example of the page goes on from


STUDY = "recoup.study"
A_STUDY = """\
import recoup
study = recoup.Study.open(
    "robot.db", params={"gain": (1, 100, "log"), "offset": None}, batch=12, seed=0
)
for _ in range(3):
    trials = study.ask(12)
    returns = [10 - 5 * (trial.params["offset"] - 1) ** 2 for trial in trials]
    later = study.tell([trial.id for trial in trials], returns)
"""
A_RUN = """\
import numpy as np

import recoup


def throw(theta, seed):
    noise = np.random.default_rng(seed).normal()
    return 10 - float(np.sum((theta - 1) ** 2)) + 0.1 * noise


run = recoup.train(throw, dim=2, iterations=5, seed=0, out="runs/throw")
"""
A_POLICY = """\
import recoup

run = recoup.train("CartPole-v1", iterations=2, seed=0, test_episodes=2)
file = run.save_policy("pole.npz")
"""
A_SEARCH = """\
import jax
import jax.numpy as jnp

import recoup

search = recoup.search("pgpe-ob", dim=2, batch=10)
key = jax.random.key(0)
state = search.init(key, mean=0.0, std=1.0)
"""
SAMPLES = """\
import numpy as np

import recoup

theta = np.random.default_rng(0).normal(0.0, 1.0, (40, 2))
returns = -np.sum((theta - 1) ** 2, axis=1)
drawn = {"proposals": (np.zeros((1, 2)), np.ones((1, 2))), "proposal": np.zeros(40, int)}
"""
PARTS = (
    Part(
        "studies",
        "Studies",
        "A study keeps a search in a file: it is asked for trials and told what came of them. What "
        "its methods give stands in [What a study says](study-records.md) and [What a study holds]"
        "(study-snapshots.md).",
        ("recoup.Study",),
        A_STUDY,
    ),
    Part(
        "study-questions",
        "What is known of a study",
        "The methods of [`Study`](studies.md#study) that look and change nothing.",
        tuple(
            f"recoup.Study.{name}"
            for name in (
                *("title", "notes", "log", "queue", "pending", "waiting", "told_later", "counts"),
                *("batch", "until_move", "trials", "dataframe", "mean", "std", "mean_policy"),
                *("frozen", "plot", "history", "distributions", "snapshot", "diagnostics", "best"),
                *("evaluate", "weighed", "suggest", "recommend", "predict"),
            )
        ),
        A_STUDY,
    ),
    Part(
        "study-records",
        "What a study says",
        "Records that the methods of [`Study`](studies.md#study) give: nobody makes them by hand. "
        "Nearly all are NamedTuples.",
        (
            "recoup.Trial",
            f"{STUDY}.reader.records.TrialResult",
            f"{STUDY}.reader.records.Named",
            "recoup.Evaluation",
            "recoup.Recommendation",
            "recoup.Prediction",
            f"{STUDY}.voice.suggesting.Suggestion",
            "recoup.core.worth.Interval",
            f"{STUDY}.voice.failing.Failing",
            f"{STUDY}.voice.keeping.Within",
            f"{STUDY}.voice.gained.Batch",
            f"{STUDY}.voice.deciding.BudgetPlan",
            f"{STUDY}.voice.predict.Matters",
            f"{STUDY}.voice.worths.MeanPolicyWorth",
        ),
        f"{A_STUDY}advice = study.recommend(budget=20)\n",
    ),
    Part(
        "study-snapshots",
        "What a study holds",
        "More records that the methods of [`Study`](studies.md#study) give: a moment of the whole "
        "study, and what its other methods answer.",
        (
            "recoup.Snapshot",
            f"{STUDY}.views.snapshot.Counts",
            f"{STUDY}.views.snapshot.Times",
            f"{STUDY}.views.snapshot.Moved",
            f"{STUDY}.views.snapshot.Failures",
            f"{STUDY}.views.snapshot.Reuse",
            f"{STUDY}.views.study_summary.Deployed",
            f"{STUDY}.care.amend.Amended",
            f"{STUDY}.trials.diary.Cancelled",
            f"{STUDY}.trials.diary.Note",
            f"{STUDY}.views.log.Happened",
            f"{STUDY}.trials.leases.Waiting",
            f"{STUDY}.trials.leases.ToldLater",
            f"{STUDY}.exchange.imported.Imported",
            f"{STUDY}.exchange.replay.Replayed",
            f"{STUDY}.views.by_weights.WeighedMean",
            "recoup.store.rows.Told",
        ),
        f"{A_STUDY}now = study.snapshot()\n",
    ),
    Part(
        "training",
        "Training",
        "`train` asks, rolls out and tells until a budget is spent, and gives a `Run`.",
        (
            "recoup.train",
            "recoup.resume",
            "recoup.load",
            "recoup.evaluate",
            "recoup.runs.fresh.Evaluated",
            "recoup.tasks.measured.Measured",
            "recoup.runs.history.Curve",
            "recoup.runs.history.HistoryRow",
            "recoup.runs.kept.KeptPolicy",
            "recoup.Callback",
            "recoup.runs.callbacks.TrialDone",
            "recoup.TensorBoard",
        ),
        A_RUN,
    ),
    Part(
        "runs",
        "Runs",
        "What `recoup.train` gives and `recoup.load` reads.",
        ("recoup.Run",),
        A_RUN,
    ),
    Part(
        "estimates",
        "Estimates",
        "What samples that other distributions drew say about one of your choice, without a study.",
        ("recoup.estimate", "recoup.engine.estimate.GradientEstimate", "recoup.pareto_k"),
        SAMPLES,
    ),
    Part(
        "search",
        "Search",
        "The same methods as pure functions of JAX, for jit and vmap over many runs. Their "
        "settings stand in [Methods and their settings](methods.md).",
        (
            "recoup.search",
            "recoup.Search",
            "recoup.engine.search.SearchState",
            "recoup.engine.info.Info",
            "recoup.Method",
            "recoup.Trajectory",
            "recoup.core.families.trajectory.Episodes",
        ),
        A_SEARCH,
    ),
    Part(
        "evosax",
        "For programs of evosax",
        "A search where an evosax strategy is expected.",
        ("recoup.EvosaxStrategy", "recoup.engine.as_evosax.Params"),
        A_SEARCH,
    ),
    Part(
        "tasks",
        "Tasks and policies",
        "Names for tasks of yours, and the policies that were learned. How a task is written says "
        "[Tasks of your own](../own-tasks.md).",
        (
            "recoup.register_task",
            "recoup.tasks.policies.policy.OwnPolicy",
            "recoup.load_policy",
            "recoup.tasks.policies.policy_files.SavedPolicy",
        ),
        A_POLICY,
    ),
    Part(
        "parts",
        "Parts of your own",
        "What a method is made of, and what your own parts are given. [Parts of your own]"
        "(../own-parts.md) shows each of them at work.",
        (
            "recoup.Mover",
            "recoup.Experience",
            "recoup.Update",
            "recoup.core.objective.Estimate",
            "recoup.family",
            "recoup.Family",
            "recoup.core.families.family.Moving",
            "recoup.needs",
            "recoup.core.weights.LogDensities",
            "recoup.relative",
            "recoup.core.gradient.Earned",
            "recoup.core.gradient.Scores",
        ),
        f"{SAMPLES}{A_SEARCH}",
    ),
    Part(
        "served",
        "Served studies",
        "A study on another machine, with the verbs of `Study`. In the examples `address` is what "
        "`recoup serve robot.db` prints, with its token.",
        (
            "recoup.connect",
            "recoup.serve.client.RemoteStudy",
            "recoup.serve.remote_trials.RemoteTrial",
            "recoup.serve.remote_trials.Receipt",
            "recoup.serve.remote_trials.Answer",
        ),
        "import recoup\n\nstudy = recoup.connect(address)\n",
    ),
    Part(
        "errors",
        "Errors in words",
        "Wrong use, and what a file or a server has against you, is one sentence that says what to "
        "do. All of it is an `InputError`, and so a `ValueError`; the program prints the sentence "
        "and ends with status 2.",
        (
            "recoup.InputError",
            "recoup.store.errors.Damaged",
            "recoup.store.errors.Conflict",
            "recoup.store.errors.Locked",
            "recoup.store.errors.NoRoom",
            "recoup.store.errors.ToldBefore",
            "recoup.store.errors.Exists",
            "recoup.serve.calling.Refused",
        ),
        "import recoup\nfrom recoup.serve.calling import Refused\n"
        "from recoup.store.errors import Conflict, Locked, NoRoom\n",
    ),
)
ELSEWHERE = {  # public names that are no functions or classes, and their page
    "METHODS": "methods",
    "__version__": "index",
}
