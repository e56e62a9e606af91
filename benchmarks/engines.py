"""Engines: what a barrier costs, and what each costs beside a bare loop and Optuna's CMA-ES."""

import heapq
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import recoup
from recoup.tasks.engines.engine import Job

WORKERS, BATCH, EPISODES, SEEDS = 4, 5, 100, 30
MEDIAN, SIGMA = 0.04, 1.0  # seconds of an episode, and of their logarithm
TESTS = 4000  # episodes of a final distribution


class DelayedCar:
    """The mountain car as a function, each episode as long as its seed says."""

    def __init__(self, median):
        self.median = median

    def __call__(self, theta, seed):
        time.sleep(self.median * _length(seed))
        return car_return(theta, seed)


def _length(seed):
    return float(np.random.default_rng([seed, 1]).lognormal(0.0, SIGMA))


def car_return(theta, seed):
    """The return of one episode, by the task's own equations in NumPy."""
    from recoup.tasks.registry import make_problem

    model = make_problem("mountain-car")
    noise = np.random.default_rng(seed).normal(size=(41, 2))
    state, value = model.initial(np, noise[0]), 0.0
    for t in range(40):
        features = model.basis(np, state)
        action = features @ theta.reshape(len(features), -1)
        after = model.transition(np, state, action, noise[t + 1])
        value += 0.95**t * float(np.sum(model.reward(np, state, action, after)))
        state = after
    return value


def car_worth(rho_mean, rho_std):
    """Expected return of a search distribution on fresh episodes."""
    import jax

    from recoup.tasks.registry import make_task

    with jax.enable_x64(True):
        draw, roll = jax.random.split(jax.random.key(9))
        thetas = rho_mean + rho_std * jax.random.normal(draw, (TESTS, rho_mean.size))
        returns = make_task("mountain-car").rollouts(jax.random.split(roll, TESTS), thetas)
        return float(np.mean(np.asarray(returns)))


def with_and_without_a_barrier():
    """Episodes a second and expected return of both, paired by seed."""
    rates, worth = {True: [], False: []}, {True: [], False: []}
    for seed in range(SEEDS):
        start = np.random.default_rng(seed).normal(size=12)
        for sync in (False, True):
            clock = Clock()
            run = recoup.train(
                DelayedCar(MEDIAN),
                "mis-pgpe-ob",
                dim=12,
                mean=start,
                std=1.0,
                epsilon=1.0,
                episodes=EPISODES,
                batch=BATCH,
                seed=seed,
                engine="process",
                workers=WORKERS,
                sync=sync,
                test_episodes=2,
                callbacks=clock,
            )
            assert run.episodes - run.failed == EPISODES
            rates[sync].append(clock.rate)
            worth[sync].append(car_worth(run.mean, run.std))
    ratio = np.array(rates[False]) / np.array(rates[True])
    gain = np.array(worth[False]) - np.array(worth[True])
    print(f"{WORKERS} workers, batch {BATCH}, log-normal episodes (sigma 1, median {MEDIAN} s), ")
    print(f"mountain car, {EPISODES} episodes, {SEEDS} seeds:")
    print(f"  asynchronous {np.mean(rates[False]):.1f} episodes/s, barrier ", end="")
    print(f"{np.mean(rates[True]):.1f}: {_said(ratio)} times (target 1.7, ideal scheduler 2.0)")
    print(f"  expected return {_said(np.array(worth[False]))} and {_said(np.array(worth[True]))}, ")
    print(f"  difference {_said(gain)} (target: not below -2 standard errors)")
    print("  share of evaluations used: 100 %")


class Clock:
    """Episodes a second between the first result and the last."""

    def __init__(self):
        self.times = []

    def on_result(self, result):
        self.times.append(time.perf_counter())

    @property
    def rate(self):
        """Without the first tenth, while workers start."""
        times = self.times[len(self.times) // 10 :]
        return (len(times) - 1) / (times[-1] - times[0])


def _said(values):
    return f"{values.mean():.2f} ± {values.std(ddof=1) / len(values) ** 0.5:.2f}"


def optuna_share(workers, trials=400):
    """Share of evaluations that Optuna's CMA-ES makes use of when workers overlap.

    The same schedule, in virtual time. A generation ends with the results of that generation that
    are in by then; one of an earlier generation that comes later is never looked at.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.CmaEsSampler(seed=0, popsize=BATCH + 1, n_startup_trials=1)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    out, asked, now = [], 0, 0.0
    while asked < trials or out:
        while asked < trials and len(out) < workers:
            trial = study.ask()
            theta = np.array([trial.suggest_float(f"x{i}", -3, 3) for i in range(12)])
            heapq.heappush(out, (now + _length(asked), asked, trial, theta))
            asked += 1
        now, number, trial, theta = heapq.heappop(out)
        study.tell(trial, -float(theta @ theta) + 0.1 * np.sin(number))
    return _used(study) / trials


def _used(study):
    """Trials of generations that have ended, as many of each as its population."""
    generations = {}
    for trial in study.trials:
        attributes = {**trial.system_attrs}
        for key, value in attributes.items():
            if key.startswith("cma") and key.endswith("generation"):
                generations.setdefault(value, []).append(trial)
    ended = [trials for number, trials in sorted(generations.items())][:-1]
    return sum(min(len(trials), BATCH + 1) for trials in ended) + len(
        [t for trials in list(generations.values())[-1:] for t in trials][: BATCH + 1]
    )


def beside_a_bare_loop(episodes=60):
    """What the serial engine adds to a bare Gymnasium loop on Pendulum, and what commits cost."""
    import gymnasium

    from recoup.tasks.own.environment import episode
    from recoup.tasks.own.found import find
    from recoup.tasks.own.host import How, host_task
    from recoup.tasks.policies.policy import beginner

    task = host_task(find("Pendulum-v1", False), How())
    env = gymnasium.make("Pendulum-v1", disable_env_checker=True)
    thetas = 0.5 * np.random.default_rng(0).normal(size=(episodes, 4))
    roller = task.build()
    bare, ours = [], []
    for i, theta in enumerate(thetas):
        for times, call in (
            (bare, lambda t=theta, i=i: bare_episode(env, t, i)),
            (ours, lambda t=theta, i=i: roller(Job(i, t, i))),
        ):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
    act = beginner(task.policy, thetas[0])()
    assert episode(env, act, 0, 200, 1.0)[0] == bare_episode(env, thetas[0], 0)
    memory, disk = (_train_seconds(episodes, where) for where in (False, True))
    engine = sum(ours) / sum(bare) - 1
    loop = memory / sum(bare) - 1
    print(f"Pendulum-v1, {episodes} episodes of 200 steps, beside a bare loop of Gymnasium with ")
    print(f"the same policy ({1e3 * sum(bare) / episodes:.1f} ms an episode): the roller adds ")
    print(f"  {100 * engine:.1f} %; training in memory (ask, tell, moves) {100 * loop:.1f} % ")
    print("  (target 5 % besides commits); durable commits on this disk ", end="")
    print(f"{1e3 * (disk - memory) / episodes:.2f} ms an episode")


def bare_episode(env, theta, seed):
    """As one would write it by hand."""
    seen, _ = env.reset(seed=seed)
    weights, bias, total = theta[:3], theta[3:], 0.0
    for _ in range(200):
        push = 2.0 * np.clip(np.asarray(seen, float) @ weights + bias, -1.0, 1.0)
        seen, reward, terminated, truncated, _ = env.step(push.astype(np.float32))
        total += float(reward)
        if terminated or truncated:
            break
    return total


def _train_seconds(episodes, on_disk):
    """Seconds between the first and the last result of a run."""
    clock = Clock()
    where = Path(tempfile.mkdtemp())
    out = {"out": where / "run"} if on_disk else {}
    try:
        recoup.train(
            "Pendulum-v1",
            "mis-pgpe-ob",
            episodes=episodes + 1,
            batch=None,
            test_episodes=2,
            callbacks=clock,
            **out,
        )
    finally:
        shutil.rmtree(where)
    return clock.times[-1] - clock.times[0]


def processes_beside_serial(episodes=150):
    """A MuJoCo task on two processes, beside one."""
    rates = {}
    for engine in ("serial", "process"):
        clock = Clock()
        how = {} if engine == "serial" else {"engine": engine, "workers": 2}
        horizon = {"horizon": 1000, "episodes": episodes, "test_episodes": 2}
        recoup.train("HalfCheetah-v5", "mis-pgpe-ob", **horizon, **how, callbacks=clock)
        rates[engine] = clock.rate
    ratio = rates["process"] / rates["serial"]
    print(f"HalfCheetah-v5, 1,000 steps: serial {rates['serial']:.2f} episodes/s, two processes ")
    print(f"  {rates['process']:.2f}: {ratio:.2f} times (target 1.7, {os.cpu_count()} cores)")


def nothing(theta):
    return 0.0


def overhead_of_engines(trials=400):
    """What an empty episode costs, from asking to telling, in memory."""
    for engine in ("serial", "process", "ray"):
        clock = Clock()
        how = {} if engine == "serial" else {"engine": engine, "workers": 2}
        try:
            given = {"dim": 4, "episodes": trials, "batch": 10, "callbacks": clock}
            recoup.train(nothing, "mis-pgpe-ob", **given, **how)
        except ValueError as missing:
            print(f"  {engine}: {missing}")
            continue
        print(f"  {engine}: {1e3 / clock.rate:.2f} ms an empty episode, ask to tell")


def main():
    """Prints all figures."""
    with_and_without_a_barrier()
    try:
        shares = {w: optuna_share(w) for w in (1, 4, 12)}
        text = ", ".join(f"{w} workers {100 * share:.0f} %" for w, share in shares.items())
        print(f"  Optuna's CMA-ES on the same schedule makes use of: {text}")
    except ImportError:
        print("  (Optuna is not installed: pip install '.[bench]')")
    beside_a_bare_loop()
    processes_beside_serial()
    overhead_of_engines()


if __name__ == "__main__":
    main()
