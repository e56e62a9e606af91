"""A task that is rolled out on the host, a trial at a time: an environment, or a function."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from gymnasium import Space

from recoup.checks import AT_ONCE, InputError, check_between, check_count
from recoup.core.types import Array, Chosen, Plain, Settings
from recoup.tasks.engines.attempt import Raised, closed, theirs
from recoup.tasks.engines.engine import Broken, Build, Job
from recoup.tasks.own.environment import MakeEnv, RolloutPlan, observe
from recoup.tasks.own.found import ENVIRONMENT, Found, envs_of, find, is_traced_env
from recoup.tasks.own.function import Calls, how_called
from recoup.tasks.policies.compared import check_spaces
from recoup.tasks.policies.described import described
from recoup.tasks.policies.environment_spaces import inputs_of
from recoup.tasks.policies.policy import Policy, make_policy, start_of, words_of

WARM_UP = "recoup warm-up"  # what the randomness of a warm-up is for
NO_FUNCTION = " If it is a function of theta, give dim=... (--dim), or params=... (--param)."


@dataclass(frozen=True)
class HostTask:
    """A task that is rolled out on the host, ready to be."""

    name: str
    dim: int
    horizon: int
    discount: float
    build: Build  # what rolls out, once in every worker
    std: Array  # standard deviations that a search starts with
    words: str  # about the policy
    policy: Policy | None = None  # None: a function of theta
    env: MakeEnv | None = None  # makes an environment, with a `render_mode` if given one
    warm_up: int = 0  # episodes that were spent before the search
    spaces: tuple[Space, ...] = ()  # of observations and actions; none of a function

    actions: int = 1  # methods that explore in action space are not for these tasks
    traced: bool = False


@dataclass(frozen=True)
class How:
    """How a task of the user's is rolled out."""

    horizon: int | None = None
    discount: float | None = None
    options: Settings = field(default_factory=dict)  # of the environment's constructor
    policy: Chosen = (
        None  # a word or an object; None: linear; of a run that goes on, what it learned
    )
    policy_options: Settings = field(default_factory=dict)
    episodes: int = 1  # a trial
    warm_up: int = 0  # episodes that statistics or centres are taken from
    normalize: bool = False
    dim: int | None = None  # of a function of theta
    names: tuple[str, ...] = ()  # of a function of named parameters
    seed: int = 0
    described: Settings | None = None  # the policy of a run that goes on


def host_task(found: Found, how: How) -> HostTask:
    """The task, once everything about it is known to be such as it may be."""
    discount = 1.0 if how.discount is None else check_between("discount", how.discount, 0.0, 1.0)
    if found.kind != ENVIRONMENT:
        return _function_task(found, how, discount)
    return _env_task(found, how, discount)


def _function_task(found: Found, how: How, discount: float) -> HostTask:
    policy = how.policy is not None or how.policy_options or how.normalize or how.warm_up
    if policy or how.horizon is not None or how.options or how.discount is not None:
        raise InputError(
            f"{found.name} is a function of its parameters: it has no policy, horizon, discount or "
            "options."
        )
    if how.episodes != 1:
        raise InputError("a function may return several values itself: one of each episode.")
    how_called(found.make, how.names)
    dim = len(how.names) or check_count("dim", how.dim)
    words = f"function of {dim:,} {'named ' if how.names else ''}parameters"
    return HostTask(found.name, dim, 1, discount, Calls(found.make, how.names), 1.0, words)


def _env_task(found: Found, how: How, discount: float) -> HostTask:
    if how.dim is not None or how.names:
        raise InputError(
            f"{found.name} is an environment: its policy has parameters of its own, so leave dim "
            "and params out."
        )
    if how.horizon is not None:
        check_count("horizon", how.horizon)
    make = envs_of(found, how.horizon, how.options)
    hint = NO_FUNCTION if how.described is None else ""  # a run that goes on is of an environment
    observations, actions, limit = _looked_at(found, make, hint)
    horizon = how.horizon if how.horizon is not None else limit
    if horizon is None:
        raise InputError(
            f"{found.name} has no time limit of its own: give horizon=1000 (--horizon 1000)."
        )
    episodes = check_count("episodes_per_trial", how.episodes)
    shared = _is_shared(make)
    frame = RolloutPlan(make, None, check_count("horizon", horizon), discount, episodes, shared)
    if how.described is not None:
        check_spaces(found.name, how.described, (observations, actions))
        policy = how.policy
    else:
        policy = _policy(how, frame, observations, actions)
    rolls = replace(frame, policy=policy)
    return HostTask(
        found.name,
        policy.parameters,
        frame.horizon,
        discount,
        rolls,
        1.0 if how.described is not None else start_of(policy),
        words_of(policy),
        policy,
        make,
        how.warm_up,
        (observations, actions),
    )


def spaces_of(task: Any) -> tuple[str, tuple[Space, Space]]:
    """The name of an environment of the user's, and its spaces of observations and actions."""
    found = find(task, is_function=False)
    if found.kind != ENVIRONMENT:
        raise InputError(f"{found.name} is no Gymnasium environment, nor does it make one.")
    make = envs_of(found, None, found.defaults.get("options") or {})
    observations, actions, _ = _looked_at(found, make, NO_FUNCTION)
    return found.name, (observations, actions)


def _looked_at(found: Found, make: MakeEnv, hint: str) -> tuple[Any, Any, int | None]:
    """Spaces and time limit of an environment, which is made for it and closed."""
    env = _made(found, make, hint)
    try:
        if is_traced_env(env) and not isinstance(getattr(env, "action_space", None), Space):
            raise InputError(
                f"{found.name} makes an environment in JAX: give the environment itself."
            )
        if not hasattr(env, "observation_space") or not hasattr(env, "action_space"):
            raise InputError(
                f"{found.name} gave {type(env).__name__}, which is no Gymnasium environment.{hint}"
            )
        spec = getattr(env, "spec", None)
        limit = None if spec is None else spec.max_episode_steps
        return env.observation_space, env.action_space, limit
    finally:
        close = getattr(env, "close", None)
        if close is not None and not _is_shared(make):
            closed(close)


def _made(found: Found, make: MakeEnv, hint: str) -> Any:
    """What makes environments, called; where it cannot be, that is said with the traceback."""
    try:
        with theirs():
            return make()
    except Raised as wrong:
        if isinstance(wrong.__cause__, InputError):
            raise wrong.__cause__ from None
        raise Broken(
            f"{found.name} makes no environment: {wrong.words}.{hint}", wrong.trace
        ) from wrong.__cause__


def _is_shared(make: MakeEnv) -> bool:
    """Whether it is the user's own object, which is not ours to close."""
    return getattr(getattr(make, "func", None), "__name__", "") == "_same"


def _policy(how: How, frame: RolloutPlan, observations: Any, actions: Array) -> Any:
    """The policy of a new run, after the warm-up that it may need."""
    given, options = how.policy or "linear", dict(how.policy_options)
    if how.normalize and not how.warm_up:
        raise InputError("normalising needs statistics: give warm_up=5 (--warm-up 5) with it.")
    if not how.warm_up:
        return make_policy(given, options, observations, actions, None, False)
    if not how.normalize and given != "kernels":
        raise InputError(
            "a warm-up is for normalize=True (--normalize), or for the centres of kernels."
        )
    seen = inputs_of(observations)
    first = given if given != "kernels" else "linear"
    behaviour = make_policy(
        first, options if first == given else {}, observations, actions, None, False
    )
    jobs = _warm_up_jobs(how, behaviour)
    walk = replace(frame, policy=behaviour, count=1)
    try:
        with theirs():
            observed = observe(walk, seen.flatten, jobs)
    except Raised as wrong:
        sentence = f"an episode of the warm-up failed: {wrong.words}"
        raise Broken(sentence, wrong.trace) from wrong.__cause__
    observed = observed[np.isfinite(observed).all(1)]
    if len(observed) < 2:
        raise InputError("the warm-up has seen fewer than two finite observations.")
    return make_policy(given, options, observations, actions, observed, how.normalize)


def _warm_up_jobs(how: How, policy: Any) -> list[Job]:
    """Policies drawn from the start of a search, one an episode."""
    count = check_count("warm_up", how.warm_up, most=AT_ONCE)
    rng = np.random.default_rng([how.seed, *WARM_UP.encode()])
    spread = np.broadcast_to(start_of(policy), (policy.parameters,))
    thetas = spread * rng.standard_normal((count, policy.parameters))
    return [Job(-i, theta, int(rng.integers(2**31))) for i, theta in enumerate(thetas)]


def policy_described(task: HostTask) -> Plain | None:
    """The policy of a task as a file holds it."""
    return None if task.policy is None else described(task.policy, task.spaces)
