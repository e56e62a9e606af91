"""Environments written in JAX as tasks: many episodes at a time, compiled as one program.

Two styles are known. Gymnax's: `reset(key, params) -> observation, state`; `step(key, state,
action, params) -> observation, state, reward, done, info`; `default_params`,
`observation_space(params)` and `action_space(params)`. `reset_env` and `step_env` are preferred
where they are, since they do not begin the next episode. Brax's: `reset(rng) -> state`, which has
`obs`, `reward` and `done`; `step(state, action) -> state`; `observation_size` and `action_size`;
actions lie in [-1, 1].
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import Array

from recoup.checks import STEPS, InputError, check_between, check_count
from recoup.core.types import Given, Settings, State
from recoup.tasks.engines.attempt import Raised, theirs
from recoup.tasks.policies.environment_spaces import SQUASH, Inputs, inputs_of, scaled
from recoup.tasks.policies.networks import MOST_KERNELS
from recoup.tasks.policies.policy import FARTHEST, Act, SpacePolicy, beginner, make_policy, start_of
from recoup.tasks.task import Task

GYMNAX = ("observation_space", "action_space")  # what tells the styles apart
BRAX = ("observation_size", "action_size")
ENDLESS = float(np.finfo(np.float32).max)  # a bound as large as this is none


class JaxEnv(NamedTuple):
    """An environment in JAX, whatever its style."""

    name: str
    observations: spaces.Space
    actions: spaces.Space
    limit: int | None  # steps after which it ends by itself
    reset: Callable[[Array], tuple[Any, Any]]  # key -> observation, state
    # key, state, action -> observation, state, reward, done
    step: Callable[[Array, Any, Any], tuple[Any, Any, Any, Any]]


class OnHost:
    """`act(theta, observation) -> action` on the host; the policy, and the spaces around it."""

    def __init__(self, policy: Given, *between: spaces.Space) -> None:
        self.acting = (policy, between)

    def __call__(self, theta: Any, observation: Any) -> Any:
        """The action for an observation."""
        return beginner(self.acting[0], theta)()(observation)


def jax_task(
    name: str,
    env: Any,
    horizon: int | None,
    discount: float | None,
    policy: Given = "linear",
    policy_options: Settings | None = None,
    params: Given = None,
) -> tuple[Task, np.ndarray]:
    """The task of an environment in JAX, and standard deviations `[D]` to start a search with.

    The horizon is the environment's own unless it is given, the discount one. `policy` is what
    `recoup.train` takes, except for what only runs on the host; `params` are of Gymnax's style, the
    environment's own unless given.
    """
    world = jax_env(name, env, params)
    steps = _horizon(world, horizon)
    rate = 1.0 if discount is None else check_between("discount", discount, 0.0, 1.0)
    chosen = jax_policy(world, policy, policy_options or {})
    run = jax.jit(episode(world, traced(chosen), steps, rate))
    _check_run(name, run, chosen.parameters)
    task = Task(
        name=name,
        dim=chosen.parameters,
        actions=1,
        horizon=steps,
        discount=rate,
        rollouts=jax.vmap(run),
        episodes=_no_episodes,
        act=OnHost(chosen, world.observations, world.actions),
        traced=True,
    )
    return task, np.full(chosen.parameters, start_of(chosen))


def jax_env(name: str, env: Any, params: Given = None) -> JaxEnv:
    """An environment of either style as one thing."""
    params = getattr(env, "default_params", None) if params is None else params
    lacking = _lacking(env, GYMNAX)
    if not lacking and params is not None:
        return _gymnax(name, env, params)
    if _lacking(env, BRAX):
        lacking = [*lacking, *(["default_params"] if params is None else [])]
        raise InputError(
            f"{name} is no environment in JAX: for one in the style of gymnax it lacks "
            f"{', '.join(lacking)}; for one in the style of brax {', '.join(_lacking(env, BRAX))}."
        )
    if params is not None:
        raise InputError(f"{name} is in the style of brax, which has no params.")
    return _brax(name, env)


def _lacking(env: Any, style: tuple[str, ...]) -> list[str]:
    return [part for part in ("reset", "step", *style) if not hasattr(env, part)]


def _gymnax(name: str, env: Any, params: Given) -> JaxEnv:
    """An environment in the style of gymnax; versions before 1.0 tell a time limit by `done`."""
    reset = getattr(env, "reset_env", env.reset)
    inner = getattr(env, "step_env", env.step)
    out_of_time = getattr(env, "is_truncated", None)

    def step(key: Array, state: State, action: Any) -> tuple[Any, Any, Any, Any]:
        seen, state, reward, *ends, _ = inner(key, state, action, params)
        if out_of_time is not None and len(ends) == 1:
            ends = [*ends, out_of_time(state, params)]
        return seen, state, reward, jnp.any(jnp.stack([jnp.asarray(end, bool) for end in ends]))

    seen, actions = env.observation_space(params), env.action_space(params)
    limit = getattr(params, "max_steps_in_episode", None)
    return JaxEnv(
        name,
        _space(name, seen),
        _space(name, actions),
        None if limit is None else int(limit),
        lambda key: reset(key, params),
        step,
    )


def _brax(name: str, env: Any) -> JaxEnv:
    """An environment in the style of brax."""
    if not isinstance(env.observation_size, (int, np.integer)):
        raise InputError(
            f"{name} observes several things at a time ({env.observation_size}): wrap it so that "
            "its observation is one vector."
        )
    size, limit = int(env.observation_size), getattr(env, "episode_length", None)

    def reset(key: Array) -> tuple[Any, Any]:
        state = env.reset(key)
        return state.obs, state

    def step(_: Array, state: State, action: Any) -> tuple[Any, Any, Any, Any]:
        state = env.step(state, action)
        return state.obs, state, state.reward, jnp.asarray(state.done, bool)

    return JaxEnv(
        name,
        spaces.Box(-np.inf, np.inf, (size,), np.float32),
        spaces.Box(-1.0, 1.0, (int(env.action_size),), np.float32),
        None if limit is None else int(limit),
        reset,
        step,
    )


def _space(name: str, given: Given) -> spaces.Space:
    """A space of gymnax as one of Gymnasium."""
    if isinstance(given, spaces.Space):
        return given
    if hasattr(given, "n"):
        return spaces.Discrete(int(given.n))
    if hasattr(given, "low") and hasattr(given, "high"):
        return _box(given)
    parts = getattr(given, "spaces", None)
    if isinstance(parts, Mapping):  # sorted by key, every time: `_flat` follows this order alone
        return spaces.Dict({key: _space(name, part) for key, part in parts.items()})
    if isinstance(parts, (list, tuple)):
        return spaces.Tuple([_space(name, part) for part in parts])
    raise InputError(f"{name} has a space of an unknown kind, {given!r}.")


def _box(given: Given) -> spaces.Box:
    """A box whose bounds are infinite where they are as large as can be."""
    dtype = np.dtype(given.dtype)
    low, high = (np.asarray(bound).astype(dtype) for bound in (given.low, given.high))
    if np.issubdtype(dtype, np.floating):
        low = np.where(low <= -ENDLESS, -np.inf, low).astype(dtype)
        high = np.where(high >= ENDLESS, np.inf, high).astype(dtype)
    shape = np.broadcast_shapes(given.shape, low.shape, high.shape)
    low, high = (np.broadcast_to(bound, shape) for bound in (low, high))
    return spaces.Box(low, high, shape, dtype.type)


def _horizon(env: JaxEnv, given: int | None) -> int:
    """Steps of an episode: the environment's own, or fewer."""
    if given is None and env.limit is None:
        raise InputError(
            f"{env.name} has no time limit of its own: give horizon=1000 (--horizon 1000)."
        )
    steps = check_count("horizon", env.limit if given is None else given, most=STEPS)
    if env.limit is not None and steps > env.limit:
        raise InputError(
            f"{env.name} ends by itself after {env.limit} steps, and horizon={steps} is more: give "
            "fewer, or set its own limit (`max_steps_in_episode`, or `episode_length`) higher."
        )
    return steps


def jax_policy(env: JaxEnv, policy: Given, options: Settings) -> Any:
    """The policy that was asked for, in the spaces of an environment."""
    if hasattr(policy, "start"):
        raise InputError(
            "a policy with a memory (one that has `start`) cannot be rolled out in JAX yet."
        )
    if isinstance(policy, str) and policy == "kernels":
        _check_grid(env.name, inputs_of(env.observations), options.get("size", 5))
    return make_policy(policy, options, env.observations, env.actions, None, False)


def _check_grid(name: str, seen: Inputs, size: Any) -> None:
    """Raises unless kernels can lie on a grid: there is no warm-up to take their centres from."""
    bounded = np.isfinite(seen.low).all() and np.isfinite(seen.high).all()
    if not bounded or check_count("size", size, least=2) ** seen.size > MOST_KERNELS:
        raise InputError(
            f"kernels lie on a grid between the bounds of what is observed, and {name} observes "
            "too many numbers for one, or without bounds: choose linear or mlp."
        )


def traced(policy: Given) -> Callable[[Array], Act]:
    """`bound(theta)`, then `act(observation) -> action`, of a policy in JAX."""
    if not isinstance(policy, SpacePolicy):
        return lambda theta: lambda seen: policy.act(theta, seen)
    choose, size = _chosen(policy.actions, policy.bounds), inputs_of(policy.observations).size

    def bound(theta: Array) -> Act:
        function = policy.network.bound(theta)

        def act(seen: Any) -> Any:
            x = _flat(policy.observations, seen).astype(theta.dtype)
            if x.shape != (size,):
                raise InputError(f"what is observed is {x.size} numbers, and should be {size}.")
            if policy.scale is not None:
                mean, std = (jnp.array(part, x.dtype) for part in policy.scale[:2])
                x = jnp.clip((x - mean) / std, -FARTHEST, FARTHEST)
            return choose(function(x))

        return act

    return bound


def _flat(space: spaces.Space, seen: Any) -> Array:
    """An observation as numbers `[I]`, as `inputs_of` gives them on the host."""
    if isinstance(space, spaces.Box):
        return jnp.ravel(seen)
    if isinstance(space, spaces.Discrete):
        return jax.nn.one_hot(seen - int(space.start), int(space.n))
    if isinstance(space, spaces.Dict):
        return jnp.concatenate([_flat(part, seen[key]) for key, part in space.items()])
    if isinstance(space, spaces.Tuple):
        return jnp.concatenate([_flat(*pair) for pair in zip(space, seen, strict=True)])
    raise InputError(
        f"observations of the kind {type(space).__name__} are not supported in JAX (Box, Discrete, "
        "Dict and Tuple are)."
    )


def _chosen(space: spaces.Space, bounds: str) -> Callable[[Array], Array]:
    """How outputs `[O]` become an action, by the formulas of `outputs_of` on the host."""
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        if space.n == 2:  # one number says which
            return lambda y: (first + (y[0] > 0)).astype(jnp.int32)
        return lambda y: (first + jnp.argmax(y)).astype(jnp.int32)
    if not isinstance(space, spaces.Box):
        raise InputError(
            f"actions of the kind {type(space).__name__} are not supported in JAX (Box and "
            "Discrete are)."
        )
    low, high, bounded, middle, half, whole = scaled(space)
    squash = bounds == SQUASH

    def act(y: Array) -> Array:
        if squash:
            y = jnp.where(bounded, jnp.tanh(y), y)
        at, by, least, most = (part.astype(y.dtype) for part in (middle, half, low, high))
        action = jnp.minimum(jnp.maximum(at + by * y, least), most)
        dtype = jax.dtypes.canonicalize_dtype(space.dtype)
        return (jnp.rint(action) if whole else action).astype(dtype).reshape(space.shape)

    return act


class _Now(NamedTuple):
    """Where an episode is."""

    t: Any
    seen: Any
    state: State
    total: Any  # discounted rewards so far
    weight: Any  # of the next reward
    done: Any


def episode(
    env: JaxEnv, bound: Callable[[Array], Act], horizon: int, discount: float
) -> Callable[[Array, Array], Array]:
    """`run(key, theta) -> return` of one episode: until it is done, or the horizon.

    A batch of them ends with the last of its episodes; nothing of one that is done changes then.
    The return is the sum of gamma^(t-1) r_t, as `models.rollout` has it.
    """

    def run(key: Array, theta: Array) -> Array:
        act, (key_reset, key_steps) = bound(theta), jax.random.split(key)

        def step(now: _Now) -> _Now:
            key_step = jax.random.fold_in(key_steps, now.t)
            seen, state, reward, done = env.step(key_step, now.state, act(now.seen))
            total = (now.total + now.weight * reward).astype(now.total.dtype)
            return _Now(now.t + 1, seen, state, total, now.weight * discount, done)

        zero, one = jnp.zeros((), theta.dtype), jnp.ones((), theta.dtype)
        first = _Now(jnp.int32(0), *env.reset(key_reset), zero, one, jnp.array(False))
        return jax.lax.while_loop(lambda now: (now.t < horizon) & ~now.done, step, first).total

    return run


def _check_run(name: str, run: Callable[[Array, Array], Array], dim: int) -> None:
    """Raises unless an episode can be traced; a run that is compiled later need not be again."""
    try:
        with theirs():
            jax.eval_shape(run, jax.random.key(0), jnp.zeros(dim))
    except Raised as wrong:
        sentence = f"{name} cannot be rolled out in JAX: {wrong.words}"
        raise InputError(sentence) from wrong.__cause__


def _no_episodes(keys: Any, policies: Any) -> Any:
    raise InputError(
        "methods that explore in action space are not for environments of your own: choose one "
        "that draws parameters, such as iw-pgpe-ob."
    )
