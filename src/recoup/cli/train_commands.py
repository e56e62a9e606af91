"""`recoup train` and `resume`."""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from recoup.checks import printable
from recoup.cli.app import (
    JsonOption,
    app,
    argument,
    examples,
    fail,
    interruptible,
    option,
    say,
    stop,
)
from recoup.cli.parsing import (
    TaskOption,
    complete_method,
    complete_setting,
    complete_task,
    duration,
    method_settings,
    number_option,
    pairs,
    vector,
    whole_option,
)
from recoup.cli.run_commands import show_returns
from recoup.cli.text_tables import show_text
from recoup.core.types import Plain
from recoup.engine.methods import DEFAULT_METHOD, SETTINGS

if TYPE_CHECKING:
    from recoup.runs.run import Run

TRAIN_EXAMPLES = examples(
    "train mountain-car",
    "train mountain-car --method iw-pgpe-ob --iterations 30 --batch 10 --seed 0 --json",
    "train toy --method mis-pgpe-ob --mean -1.6 --std 1 --set update=natural --set kl=0.5",
    "train CartPole-v1 --episodes 200",
    "train Swimmer-v5 --policy mlp --policy-option hidden=16,16 --engine process --workers 4",
    "train robot:make_env --normalize --warm-up 5 --engine process --timeout 10m",
    "train robot:rollout --param stiffness=10:200:log --param damping=0:1 --episodes 100",
)
RESUME_EXAMPLES = examples(
    "resume runs/mountain-car-recoup-0",
    "resume runs/mountain-car-recoup-0 --iterations 60",
    "resume runs/mountain-car-recoup-0 --episodes 400",
    "resume runs/make_env-recoup-0 --task robot:make_env --engine process --workers 8",
)

Engine = Annotated[
    str | None, option("serial (unless said), process or ray; for tasks of yours.", metavar="NAME")
]
Workers = Annotated[int | None, whole_option("Workers (as many as cores unless said).")]
Sync = Annotated[bool | None, option("--sync", "Wait for a batch before asking for the next.")]
Timeout = Annotated[str | None, option("What a trial may take, like 90s or 10m.", metavar="TIME")]
Retries = Annotated[int | None, whole_option("How often a failed trial is tried again (1).")]
Address = Annotated[str | None, option("Of a Ray cluster, like auto or host:6379.")]
Quiet = Annotated[bool, option("--quiet", "No progress, no table.")]


@app.command(epilog=TRAIN_EXAMPLES)
def train(
    task: Annotated[
        str,
        argument(
            "One of `recoup tasks`, a Gymnasium id, or module:callable (an environment's "
            "constructor; with --dim or --param a function).",
            metavar="TASK",
            autocompletion=complete_task,
        ),
    ],
    method: Annotated[
        str, option("See `recoup methods`.", metavar="NAME", autocompletion=complete_method)
    ] = DEFAULT_METHOD,
    episodes: Annotated[int | None, whole_option("Rollouts to spend in all.")] = None,
    iterations: Annotated[
        int | None, whole_option("Batches to spend instead (30 unless said).")
    ] = None,
    batch: Annotated[
        int | None, whole_option("Trials of one iteration (from method and task unless said).")
    ] = None,
    seed: Annotated[int, whole_option("Seed of all randomness.")] = 0,
    out: Annotated[
        Path | None, option("Run directory (runs/TASK-METHOD-SEED unless said).")
    ] = None,
    mean: Annotated[
        str | None, option("Start of the means: a number, or D separated by commas.")
    ] = None,
    std: Annotated[
        str | None,
        option(
            "Start of the standard deviations (in action space, of the actions), likewise; 1, "
            "or by the policy's fan-in, unless said."
        ),
    ] = None,
    horizon: Annotated[
        int | None, whole_option("Steps of an episode (the task's own unless said).")
    ] = None,
    discount: Annotated[
        float | None, number_option("Discount factor (the task's own unless said).")
    ] = None,
    option: Annotated[
        list[str] | None,
        option(
            "--option",
            "An option of the task or environment, repeatable; features=raw for reach-2.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    policy: Annotated[
        str | None, option("linear (unless said), kernels or mlp.", metavar="NAME")
    ] = None,
    policy_option: Annotated[
        list[str] | None,
        option(
            "--policy-option",
            "Of the policy, repeatable: hidden=32,32, size=5, bias=false, actions=squash.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    episodes_per_trial: Annotated[
        int | None, whole_option("Episodes whose mean is a trial's return (1 unless said).")
    ] = None,
    normalize: Annotated[
        bool | None, option("--normalize", "Normalise observations by those of the warm-up.")
    ] = None,
    warm_up: Annotated[
        int | None, whole_option("Episodes before the search, for --normalize or kernels.")
    ] = None,
    dim: Annotated[int | None, whole_option("Parameters of a function of theta.")] = None,
    param: Annotated[
        list[str] | None,
        option(
            "--param",
            "A parameter of a function, repeatable: NAME or NAME=LOW:HIGH[:log].",
            metavar="NAME=RANGE",
        ),
    ] = None,
    engine: Engine = None,
    workers: Workers = None,
    sync: Sync = None,
    timeout: Timeout = None,
    retries: Retries = None,
    address: Address = None,
    test_episodes: Annotated[
        int | None, whole_option("Fresh episodes of a test (the task's own unless said).")
    ] = None,
    test_all: Annotated[
        bool,
        option(
            "--test-all",
            "Test after every iteration; unless said, after each of the first ten, every "
            "second up to 20, every fourth up to 40 and so on, and after the last.",
        ),
    ] = False,
    keep_every: Annotated[
        int | None,
        whole_option("Keep the policy of every N-th iteration in policies/ (10; 0: none)."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        option(
            "--set",
            f"A setting of the method, repeatable: {', '.join(SETTINGS)}.",
            metavar="KEY=VALUE",
            autocompletion=complete_setting,
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: Quiet = False,
) -> None:
    """Learn a task; write a run directory."""
    settings, options = method_settings(set_), pairs("--option", option or [])
    out = out or Path("runs") / f"{re.sub('[/:]', '-', task)}-{method}-{seed}"
    from recoup.runs.train import train as train_task

    def learn() -> "Run":
        return train_task(
            task,
            method,
            mean=None if mean is None else vector("--mean", mean),
            std=None if std is None else vector("--std", std),
            policy_options=pairs("--policy-option", policy_option or []) or None,
            params=param,
            **_rolling(engine, workers, sync, timeout, retries, address),
            out=out,
            progress=not quiet,
            episodes=episodes,
            iterations=iterations,
            batch=batch,
            seed=seed,
            horizon=horizon,
            discount=discount,
            options=options,
            policy=policy,
            episodes_per_trial=episodes_per_trial,
            warm_up=warm_up,
            normalize=normalize,
            dim=dim,
            test_episodes=test_episodes,
            test_all=test_all,
            keep_every=keep_every,
            **settings,
        )

    _say(_run(learn, out, task), out, as_json, quiet)


@app.command(epilog=RESUME_EXAMPLES)
def resume(
    run: Annotated[Path, argument("A run directory.", "RUN")],
    iterations: Annotated[
        int | None,
        whole_option("Go on to so many iterations in all, also where the run is finished."),
    ] = None,
    episodes: Annotated[int | None, whole_option("Or to so many episodes in all.")] = None,
    task: TaskOption = None,
    engine: Engine = None,
    workers: Workers = None,
    sync: Sync = None,
    timeout: Timeout = None,
    retries: Retries = None,
    address: Address = None,
    as_json: JsonOption = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run after any stop or amendment, or to more than was planned."""
    from recoup.runs.train import resume as resume_run

    rolling = _rolling(engine, workers, sync, timeout, retries, address)
    given = {key: value for key, value in rolling.items() if value is not None}
    how: Plain = {"task": task, "engine": given or None, "progress": not quiet}
    how |= {"iterations": iterations, "episodes": episodes}
    done = _run(lambda: resume_run(run, **how), run, task)
    _say(done, run, as_json, quiet)


def _rolling(
    engine: str | None,
    workers: int | None,
    sync: bool | None,
    timeout: str | None,
    retries: int | None,
    address: str | None,
) -> Plain:
    """Settings of an engine, as `recoup.train` takes them."""
    seconds = None if timeout is None else duration("--timeout", timeout)
    found = {"engine": engine, "workers": workers, "sync": sync or None, "timeout": seconds}
    return {**found, "retries": retries, "address": address}


def _run(learn: Any, out: Path, task: str | None) -> "Run":
    """A run; Ctrl-C and a task that is broken leave it such that it can be gone on with."""
    from recoup.study.run.beside import STUDY
    from recoup.tasks.engines.engine import Broken

    study = out.absolute() / STUDY  # the task may change the directory
    try:
        with interruptible(), prints_elsewhere():
            return learn()
    except KeyboardInterrupt:
        how = _go_on(out, task)
        before = "stopped before the first iteration; nothing was written."
        stop(f"stopped; {how}" if study.is_file() else before)
    except Broken as broken:
        if broken.trace:
            for line in broken.trace.splitlines():
                print(printable(line), file=sys.stderr)
        fail(f"{broken} {_go_on(out, task)}" if study.is_file() else str(broken), 1)


@contextmanager
def prints_elsewhere() -> Iterator[None]:
    """What a task prints goes to standard error: standard output is ours."""
    sys.stdout.flush()
    try:
        ours = os.dup(1)
    except OSError:  # there is none
        yield
        return
    try:
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(ours, 1)
        os.close(ours)


def _go_on(run: Path, task: str | None) -> str:
    """How to go on with a run that was stopped; code of its own is named again."""
    again = f" --task {task}" if task and ":" in task else ""
    return f"`recoup resume {run}{again}` goes on where it was."


def _say(run: "Run", out: Path, as_json: bool, quiet: bool) -> None:
    """The end of a run, in the form that was asked for; its directory as it was named."""
    policy = run.return_mean_policy
    if policy is None:  # amended by another process this very moment
        fail(run.outdated or f"the run in {out} is not finished.", 1)
    if not (isfinite(run.return_search.mean) and isfinite(policy.mean)):
        fail(f"the run in {out} ended with a return that is not finite.", 1)
    if as_json:
        print(json.dumps({**run.summary(), "run": str(out)}))
    elif not quiet:
        _show(run, out)


def _show(run: "Run", out: Path) -> None:
    from recoup.study.voice.sentences import failed_trials

    first, plan, policy = run.history[0], run.plan, run.return_mean_policy
    assert policy is not None
    returns: dict[str, tuple[float, float, int]] = {}
    if first.curve_episodes:
        start = (first.return_curve, first.return_curve_stderr, first.curve_episodes)
        returns["start of the curve"] = start
    returns |= {"search distribution": run.return_search, "mean policy": policy}
    print()
    show_returns(f"{plan.task} by {plan.method}: final test", returns)
    moves = run.history[-1].iteration
    print()
    show_text(f"{run.episodes} episodes in {moves} iterations, {run.wall_s:.1f} s")
    if plan.own:
        show_text(_about(run))
    if run.tests_failed:
        show_text(f"{run.tests_failed} test episodes failed: the returns are of the others.")
    if run.failed:
        show_text(failed_trials(run.failed, plan.settings.failure))
    assert run.out is not None
    for name in ("curve.png", "policy.npz", "policies", "study.db", "config.json"):
        if (run.out / name).exists():
            say(f"  {out / name}")


def _about(run: "Run") -> str:
    """What was searched, on a task of the user's: a finished run may not know its code."""
    from recoup.tasks.own.host import HostTask

    warm = f"; {run.plan.warm_up} episodes of warm-up before" if run.plan.warm_up else ""
    found = dict(run.mean_policy).items() if run.names else ()
    names = [f"{name}={x if isinstance(x, str) else f'{x:.6g}'}" for name, x in found]
    made, dim = run.problem, len(run.names) or run.mean.size
    words = made.words if isinstance(made, HostTask) else f"{dim:,} parameters"
    return f"{words}{warm}" + (f": {', '.join(names)}" if names else "")
