"""A policy: an observation flattened, normalised, through a network, to an action of the space."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from recoup.checks import SAMPLE_NUMBERS, InputError, check_choice, check_count, nearest, shortly
from recoup.core.types import Action, Array, Given, Observation, Settings, State
from recoup.tasks.policies.adapters import adapted, library_of
from recoup.tasks.policies.environment_spaces import CLIP, SQUASH, Inputs, inputs_of, outputs_of
from recoup.tasks.policies.networks import (
    MLP,
    Kernels,
    Linear,
    Network,
    fitted,
    grid,
    hidden_of,
    linear,
)

OPTIONS = {  # of each kind of policy, beside `actions`
    "linear": ("bias",),
    "kernels": ("size",),
    "mlp": ("hidden",),
}
FARTHEST = 10.0  # normalised observations are held to +- this

Act = Callable[[Observation], Action]


@runtime_checkable
class OwnPolicy(Protocol):
    """A policy of the user's: `act(theta, observation) -> action`.

    One with a memory also has `start() -> state`, and `act(theta, observation, state)` gives the
    action and the next state.

    >>> class Push:
    ...     parameters = 4
    ...     def act(self, theta, observation):
    ...         return int(theta @ observation > 0)
    >>> recoup.train("CartPole-v1", policy=Push(), iterations=1, test_episodes=2).mean.shape
    (4,)
    """

    @property
    def parameters(self) -> int:
        """How many parameters it has."""

    def act(self, theta: Array, observation: Array, *state: State) -> Array:
        """The action for an `observation` by the parameters `theta`.

        One with a memory also takes the `state`, and gives the next.
        """


class Scale(NamedTuple):
    """Means and standard deviations of observations, taken once and then kept as they are."""

    mean: tuple[float, ...]  # [I]
    std: tuple[float, ...]
    seen: int  # observations that they were taken from


@dataclass(frozen=True)
class SpacePolicy:
    """A network between the spaces of an environment."""

    network: Network
    observations: spaces.Space
    actions: spaces.Space
    bounds: str = CLIP
    scale: Scale | None = None

    @property
    def parameters(self) -> int:
        """How many there are, D."""
        return self.network.parameters

    def bound(self, theta: Array) -> Act:
        """`act(observation) -> action` of one theta."""
        numbers, act = self.numbers(theta), outputs_of(self.actions, self.bounds).act
        return lambda seen: act(numbers(seen))

    def numbers(self, theta: Array) -> Callable[[Observation], np.ndarray]:
        """What the network makes of an observation, numbers `[O]` that then become an action."""
        function = self.network.bound(np.asarray(theta, float))
        flatten = inputs_of(self.observations).flatten
        if self.scale is None:
            return lambda seen: function(flatten(seen))
        mean, std = np.array(self.scale.mean), np.array(self.scale.std)

        def scaled(seen: Observation) -> np.ndarray:
            return function(((flatten(seen) - mean) / std).clip(-FARTHEST, FARTHEST))

        return scaled


Policy = SpacePolicy | OwnPolicy


def beginner(policy: Policy, theta: Array) -> Callable[[], Act]:
    """A function that begins an episode: it gives `act(observation) -> action` for one theta."""
    if isinstance(policy, SpacePolicy):
        act = policy.bound(theta)
        return lambda: act
    theta = np.asarray(theta, float)
    start = getattr(policy, "start", None)
    if start is None:
        return lambda: lambda seen: policy.act(theta, seen)
    return lambda: _remembering(policy, theta, start())


def _remembering(policy: OwnPolicy, theta: np.ndarray, state: State) -> Act:
    """`act(observation)` of a policy that carries a state from step to step."""

    def act(seen: Observation) -> Action:
        nonlocal state
        action, state = policy.act(theta, seen, state)
        return action

    return act


def make_policy(
    given: Given,
    options: Settings,
    observations: spaces.Space,
    actions: spaces.Space,
    observed: np.ndarray | None,
    normalize: bool,
) -> Policy:
    """The policy that was asked for, by a word, as a network or as an object of the user's.

    `observed [n, I]` is what was seen in a warm-up, None where there was none.
    """
    options = dict(options)
    bounds = check_choice("actions", options.pop("actions", CLIP), (CLIP, SQUASH))
    if library_of(given) is not None:
        given = adapted(given, inputs_of(observations).size)
    if not isinstance(given, str) and not hasattr(given, "bound"):
        return _check_action(_own(given, options, normalize), observations, actions)
    scale = scale_of(observed) if normalize and observed is not None else None
    network = given
    if isinstance(given, str):
        _check_options(given, options)
        scaled = observed if scale is None or observed is None else normalized(scale, observed)
        network = _network(given, options, observations, actions, bounds, scaled)
    else:
        _check_network(given, options, outputs_of(actions, bounds).size, inputs_of(observations))
    check_count("the policy's number of parameters", network.parameters, most=SAMPLE_NUMBERS)
    return SpacePolicy(network, observations, actions, bounds, scale)


def _own(given: Given, options: Settings, normalize: bool) -> OwnPolicy:
    if not isinstance(given, OwnPolicy):
        raise InputError(
            "a policy is a word (linear, kernels, mlp), a module of Flax, Equinox or PyTorch, or "
            f"an object with `parameters` and `act(theta, observation)`; got {shortly(given)}."
        )
    check_count("`parameters` of the policy", given.parameters)
    if options or normalize:
        raise InputError("a policy of your own sees observations as they are, and has no options.")
    return given


def _check_network(network: Given, options: Settings, outputs: int, seen: Inputs) -> None:
    """Raises unless a network of the user's takes an observation and gives what an action needs."""
    if options:
        raise InputError(f"a network of your own has no option {next(iter(options))!r}.")
    if getattr(network, "outputs", outputs) != outputs:
        raise InputError(
            f"the network has {network.outputs} outputs, but actions of this task take {outputs}."
        )
    try:
        found = np.shape(network.bound(np.zeros(network.parameters))(np.zeros(seen.size)))
    except Exception as wrong:
        raise InputError(
            f"the network cannot take an observation of this task, {seen.size} numbers: "
            f"{type(wrong).__name__}: {str(wrong)[:200]}."
        ) from None
    if found != (outputs,):
        raise InputError(
            f"the network gives the shape {list(found)}, but actions of this task take [{outputs}]."
        )


def _check_action(policy: OwnPolicy, observations: spaces.Space, actions: spaces.Space) -> Policy:
    """`policy`, of the user's, once what it does has the shape of an action.

    Where it raises, the episodes say so: what an environment gives may differ from its space.
    """
    try:
        seen = deepcopy(observations).sample()
        action = beginner(policy, np.zeros(policy.parameters))()(seen)
    except Exception:
        return policy
    wanted = getattr(actions, "shape", None)
    if wanted is not None and np.shape(action) != wanted and np.size(action) != np.prod(wanted):
        raise InputError(
            f"`act` of the policy gives the shape {list(np.shape(action))}, but actions of this "
            f"task have {list(wanted)}."
        )
    return policy


def _check_options(kind: str, options: Settings) -> None:
    known = (*OPTIONS[check_choice("policy", kind, OPTIONS)], "actions")
    for option in options:
        if option not in known:
            raise InputError(
                f"{option!r} is not an option of the policy {kind}; its options are "
                f"{', '.join(known)}.{nearest(option, known)}"
            )


def _network(
    kind: str,
    options: Settings,
    observations: spaces.Space,
    actions: spaces.Space,
    bounds: str,
    observed: np.ndarray | None,
) -> Network:
    seen, outputs = inputs_of(observations), outputs_of(actions, bounds).size
    if kind == "linear":
        return linear(seen.size, outputs, **options)
    if kind == "mlp":
        return MLP(seen.size, hidden_of(options.get("hidden", (16, 16))), outputs)
    if observed is not None:
        centres, widths = fitted(observed, options.get("size", 50))
    else:
        centres, widths = grid(seen.low, seen.high, options.get("size", 5))
    return Kernels(tuple(map(tuple, centres.tolist())), tuple(widths.tolist()), outputs)


def scale_of(observed: np.ndarray) -> Scale:
    """What normalises observations `[n, I]`; one that never changed is left as large as it is."""
    mean, std = observed.mean(0), observed.std(0)
    std = np.where(std > 1e-6 * np.maximum(np.abs(mean), 1.0), std, 1.0)
    return Scale(tuple(mean.tolist()), tuple(std.tolist()), len(observed))


def normalized(scale: Scale, observed: np.ndarray) -> np.ndarray:
    """Observations as the network sees them."""
    return ((observed - np.array(scale.mean)) / np.array(scale.std)).clip(-FARTHEST, FARTHEST)


def start_of(policy: Policy) -> np.ndarray | float:
    """Standard deviations that a search over a policy starts with."""
    if isinstance(policy, SpacePolicy):
        return policy.network.spread()
    return 1.0


def words_of(policy: Policy) -> str:
    """A policy in a few words."""
    if not isinstance(policy, SpacePolicy):
        return f"{type(policy).__name__}, {policy.parameters:,} parameters"
    network, count = policy.network, f"{policy.parameters:,} parameters"
    if isinstance(network, Kernels):
        return f"linear policy on {len(network.centres):,} kernels, {count}"
    name = getattr(network, "name", type(network).__name__)
    kind = {Linear: "linear policy", MLP: "MLP"}.get(type(network), name)
    layers = f" of {' x '.join(map(str, network.hidden))}" if isinstance(network, MLP) else ""
    return f"{kind}{layers}, {count}"
