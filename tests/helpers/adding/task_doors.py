"""A task that was added, `rail`, in every door; run where the package has it."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from program import recoup as program

import recoup
from recoup.tasks.registry import make_env, make_task

THETA = np.array([-0.4, 0.5])


def said(*words):
    done = program(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_environment(**options):
    """The return of one episode of the Gymnasium environment, by NumPy."""
    task, env, total = make_task("rail"), make_env("rail", **options), 0.0
    observation, _ = env.reset(seed=0)
    for step in range(task.horizon):
        observation, reward, *_ = env.step(task.act(THETA, observation))
        total += task.discount**step * reward
    return total


for options in ({}, {"mark": -2.0}):
    rollouts = make_task("rail", **options).rollouts
    (compiled,) = rollouts(jax.random.split(jax.random.key(0), 1), jnp.asarray(THETA)[None])
    np.testing.assert_allclose(by_environment(**options), compiled, rtol=1e-5)
assert "recoup/Rail-v0" in gymnasium.registry

short = {"iterations": 2, "batch": 4, "test_episodes": 4}
for method in ("recoup", "iw-reinforce-ob"):  # in the parameters, and in the actions
    run = recoup.train("rail", method, out=method, options={"mark": 0.5}, **short)
    assert recoup.resume(run, iterations=3).plan.options == {"mark": 0.5}
recoup.train("recoup/Rail-v0", "recoup", out="by-numpy", **short)  # the environment, trial by trial

assert "rail" in said("tasks")
said("train", "rail", "--option", "mark=2", "--iterations", "2", "--quiet", "--out", "by-hand")
assert "mean policy" in said("evaluate", "by-hand", "--episodes", "2")
said("report", "by-hand", "--out", "page.html")
how = ("--method", "recoup", "--runs", "2", "--episodes", "8", "--workers", "1", "--quiet")
said("compare", "--task", "rail", *how, "--out", "compared")
print("every door")
