"""The reaching task in MJX: thousands of episodes at once on a GPU, traced by JAX.

Between steps only what determines the motion is carried, angles, velocities and the solver's warm
start, so that XLA drops every derived quantity that the next step would compute anew. The solver of
the joints' stops is bounded: under `vmap` every episode waits for the slowest, and more iterations
change no return beyond rounding, at 3.5 times the time. Products of matrices are computed in full
float32: with the shorter type that GPUs prefer, returns are off by up to 4e-3 instead of 3e-5.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from recoup.checks import not_installed
from recoup.core.families.action_policy import linear
from recoup.tasks.reach import rules
from recoup.tasks.reach.body import SUBSTEPS, compile_body, servos_of
from recoup.tasks.reach.rules import Reach

SOLVER = (4, 4)  # iterations for the joints' stops, and of the line search in each


def mjx_rollouts(task: Reach, horizon: int, discount: float) -> Callable[[Array, Array], Array]:
    """`rollouts(noise [N, T, n], theta [N, F n]) -> returns [N]`, to be jitted; noise in rad."""
    mjx = import_mjx()
    body = compile_body(task.joints, task.target)
    body.opt.iterations, body.opt.ls_iterations = SOLVER
    servos, hand = servos_of(body), body.site("hand").id
    model, start = mjx.put_model(body), mjx.make_data(body)
    target = jnp.asarray(task.target)

    def substep(state: tuple[Array, ...], sent: Array) -> tuple[Array, ...]:
        q, qdot, warmstart = state
        data = start.replace(qpos=q, qvel=qdot, qacc_warmstart=warmstart, ctrl=sent)
        after = mjx.step(model, data)
        return after.qpos, after.qvel, after.qacc_warmstart

    def hand_at(q: Array) -> Array:
        return mjx.kinematics(model, start.replace(qpos=q)).site_xpos[hand]

    def rollout(noise: Array, theta: Array) -> Array:
        def step(carry: Any, push: Array) -> tuple[Any, Array]:
            state, scale = carry
            q, qdot, _ = state
            action = linear(theta, rules.features(jnp, task, servos, q, qdot))
            sent = rules.command(jnp, servos, action, push)
            cost = rules.control_cost(jnp, task, servos, q, qdot, sent)
            state = jax.lax.fori_loop(0, SUBSTEPS, lambda _, s: substep(s, sent), state)
            distance = jnp.sqrt(jnp.sum((hand_at(state[0]) - target) ** 2))
            return (state, scale * discount), scale * rules.reward(jnp, task, distance, cost)

        rest = (start.qpos, start.qvel, start.qacc_warmstart)
        return jnp.sum(jax.lax.scan(step, (rest, jnp.ones(())), noise)[1])

    def precise(noise: Array, theta: Array) -> Array:
        with jax.default_matmul_precision("highest"):
            return rollout(noise, theta)

    return jax.vmap(precise)


def import_mjx() -> Any:
    """MJX, or one sentence that says how to get it."""
    try:
        from mujoco import mjx
    except ImportError:
        raise not_installed("rollouts on a GPU need MJX", "mjx") from None
    return mjx
