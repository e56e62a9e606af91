"""Steps per second of the reaching task: the batch engine, a tidy loop over `mj_step`, MJX."""

import os

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import in_turn
from recoup import train
from recoup.tasks.reach import rules
from recoup.tasks.reach.batch_engine import ReachBody
from recoup.tasks.reach.body import SUBSTEPS, import_mujoco
from recoup.tasks.reach.mjx import mjx_rollouts
from recoup.tasks.reach.rules import reach

BATCH, HORIZON = 64, 100
mujoco = import_mujoco()


def loop(engine, gains, noise):
    """Episodes one after the other, a step at a time; the task's rules as they are."""
    task, servos, model = engine.task, engine.servos, engine.model
    data, rewards = mujoco.MjData(model), np.zeros(noise.shape[:2])
    for n in range(len(noise)):
        mujoco.mj_resetData(model, data)
        for t in range(noise.shape[1]):
            seen = rules.features(np, task, servos, data.qpos, data.qvel)
            data.ctrl[:] = rules.command(np, servos, seen @ gains[n], noise[n, t])
            cost = rules.control_cost(np, task, servos, data.qpos, data.qvel, data.ctrl)
            mujoco.mj_step(model, data, nstep=SUBSTEPS)
            mujoco.mj_kinematics(model, data)
            distance = np.linalg.norm(data.site_xpos[engine.hand] - task.target)
            rewards[n, t] = rules.reward(np, task, distance, cost)
    return rewards


def calls(joints):
    """The same episodes by each way of simulating them."""
    task, rng = reach(joints), np.random.default_rng(0)
    gains = rng.normal(size=(BATCH, task.size, joints))
    noise = task.noise * rng.normal(size=(BATCH, HORIZON, joints))
    arrays = jnp.asarray(noise, jnp.float32), jnp.asarray(gains.reshape(BATCH, -1), jnp.float32)
    one, all_cores = ReachBody(task, 1), ReachBody(task, os.cpu_count())
    on_mjx = jax.jit(mjx_rollouts(task, HORIZON, 0.9))

    def act(t, seen):
        return np.einsum("nf,nfa->na", seen, gains)

    fast = {
        "loop": lambda: loop(one, gains, noise),
        "one": lambda: one.run(act, noise).rewards,
        "all": lambda: all_cores.run(act, noise).rewards,
    }
    return fast, lambda: on_mjx(*arrays)


def main():
    print(f"reaching, {BATCH} episodes of {HORIZON} steps of {SUBSTEPS} sub-steps, steps a second:")
    for joints, least in ((2, 1.5), (9, 1.2)):
        fast, on_mjx = calls(joints)
        times = in_turn(fast, 5) | in_turn({"mjx": on_mjx}, 1)
        speed = {name: BATCH * HORIZON / spent for name, spent in times.items()}
        ratio = {name: times["loop"] / spent for name, spent in times.items()}
        print(
            f"  {joints} joints: loop over mj_step {speed['loop']:.0f}\n"
            f"    batch engine, one thread {speed['one']:.0f}: {ratio['one']:.2f} times the loop "
            f"(target: at least {least})\n"
            f"    {os.cpu_count()} threads {speed['all']:.0f}: {ratio['all']:.2f} times the loop "
            f"(target: about {2 * least} with two free cores)\n"
            f"    MJX on this CPU {speed['mjx']:.0f}: the batch engine is "
            f"{times['mjx'] / times['all']:.0f} times faster (target: at least 10)",
            flush=True,
        )
    first, second = (train("reach-2", "iw-pgpe-ob", iterations=60, seed=s).wall_s for s in (0, 1))
    print(
        f"  60 iterations of iw-pgpe-ob with 2 joints: {second:.1f} s, with 3,150 episodes of "
        f"tests (target: seconds; the first run, which compiles, {first:.1f} s)"
    )


if __name__ == "__main__":
    main()
