"""A policy as TorchScript, of ours or around a module of PyTorch: tensors in, the action out.

One tensor for each part of an observation, in the order in which they are flattened. Numbers are
float64 but for what a module of the user's computes.
"""

import copy
import io
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from gymnasium import spaces

from recoup.checks import InputError
from recoup.core.types import Array, Module
from recoup.tasks.policies.adapters import TorchModule
from recoup.tasks.policies.environment_spaces import SQUASH, scaled
from recoup.tasks.policies.leaves import ObservationLeaf, leaves, parts_of
from recoup.tasks.policies.networks import MLP, Kernels, Linear, layers_of
from recoup.tasks.policies.policy import FARTHEST, Policy, SpacePolicy, words_of

TRIED_OBSERVATIONS = 8  # observations that it is tried with before it is written

Step = Callable[..., Any]


def torchscript_bytes(policy: Policy, theta: np.ndarray) -> bytes:
    """A policy as a file of TorchScript, once it has acted as the policy does."""
    known = (Linear, Kernels, MLP, TorchModule)
    if not isinstance(policy, SpacePolicy) or not isinstance(policy.network, known):
        raise InputError(
            "TorchScript is written of linear, kernels and mlp policies and of modules of PyTorch, "
            f"and this is another ({words_of(policy)}): write it with what its library offers, "
            "from `run.network()`."
        )
    try:
        import torch
    except ImportError:
        raise InputError("TorchScript needs PyTorch: `pip install torch`.") from None
    space = copy.deepcopy(policy.observations)
    space.seed(0)
    tried = [parts_of(space, space.sample()) for _ in range(TRIED_OBSERVATIONS)]
    tensors = [[torch.from_numpy(np.array(part)) for part in one] for one in tried]
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")  # one of PyTorch's is that TorchScript is an old form
        module = _module(torch, policy, theta)
        try:
            made = torch.jit.trace(module, tuple(tensors[0]))
        except Exception as wrong:
            raise _unwritable(policy, wrong) from wrong
        doubts = [one for one in said if issubclass(one.category, torch.jit.TracerWarning)]
        if doubts:
            raise _unwritable(policy, doubts[0].message)
        _check(policy, theta, made, tensors, tried)
        file = io.BytesIO()
        torch.jit.save(made, file)
    return file.getvalue()


def _unwritable(policy: SpacePolicy, wrong: Any) -> InputError:
    why = f"{wrong}".strip().split("\n")[0] or type(wrong).__name__
    return InputError(f"{words_of(policy)} cannot be made TorchScript: {why}")


def _check(
    policy: SpacePolicy, theta: np.ndarray, made: Any, tensors: list[Any], tried: list[Any]
) -> None:
    """Raises unless what was made acts as the policy does."""
    act, names = policy.bound(theta), [leaf.name for leaf in leaves(policy.observations)]
    for given, parts in zip(tensors, tried, strict=True):
        want = np.asarray(act(_whole(policy.observations, iter(parts))))
        got = made(*given).numpy()
        if got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-6):
            raise InputError(
                f"{words_of(policy)} acts in another way as TorchScript ({got} instead of {want}, "
                f"of {', '.join(names)}): its module does what cannot be written so."
            )


def _whole(space: spaces.Space, parts: Any) -> Any:
    """An observation put together of its parts."""
    if isinstance(space, spaces.Dict):
        return {key: _whole(part, parts) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_whole(part, parts) for part in space)
    one = next(parts)
    return int(one) if isinstance(space, spaces.Discrete) else one


def _module(torch: Module, policy: SpacePolicy, theta: np.ndarray) -> Any:
    """A module that takes an observation's parts and gives the action."""
    parts, scale = leaves(policy.observations), policy.scale
    flatten = [_flat(torch, leaf) for leaf in parts]
    inner = _network(torch, policy.network, theta)
    act = _action(torch, policy.actions, policy.bounds)
    mean, std = (None, None) if scale is None else (_tensor(torch, part) for part in scale[:2])

    class Acts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = inner

        def forward(self, *seen: Any) -> Any:
            x = torch.cat([flat(one) for flat, one in zip(flatten, seen, strict=True)])
            if mean is not None:
                x = ((x - mean) / std).clamp(-FARTHEST, FARTHEST)
            return act(self.network(x))

    return Acts().eval().requires_grad_(False)  # to be used: its action is a plain tensor


def _tensor(torch: Module, numbers: Array) -> Array:
    return torch.from_numpy(np.array(numbers))


def _flat(torch: Module, leaf: ObservationLeaf) -> Step:
    """How a part of an observation becomes numbers."""
    if leaf.entry is None or leaf.value is None:
        return lambda one: one.reshape(-1).double()
    entry, value = _tensor(torch, leaf.entry), _tensor(torch, leaf.value)
    return lambda one: (one.reshape(-1).long()[entry] == value).double()


def _network(torch: Module, network: Any, theta: np.ndarray) -> Any:
    """The network as a module from float64 to float64."""
    if isinstance(network, TorchModule):
        return _own(torch, network, theta)
    made: list[Any] = []
    if isinstance(network, Kernels):
        made.append(_near(torch, network))
    for weights, bias in layers_of(network, theta):
        layer = torch.nn.Linear(*weights.shape, bias=bias is not None, dtype=torch.float64)
        layer.weight.copy_(_tensor(torch, weights.T))
        if bias is not None:
            layer.bias.copy_(_tensor(torch, bias))
        made += [torch.nn.Tanh(), layer] if made and not isinstance(network, Kernels) else [layer]
    return torch.nn.Sequential(*made)


def _near(torch: Module, network: Kernels) -> Any:
    widths = np.array(network.widths)

    class Near(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("centres", _tensor(torch, np.array(network.centres) / widths))
            self.register_buffer("widths", _tensor(torch, widths))

        def forward(self, x: Array) -> Array:
            return torch.exp(-0.5 * ((x / self.widths - self.centres) ** 2).sum(-1))

    return Near()


def _own(torch: Module, network: TorchModule, theta: np.ndarray) -> Any:
    """A module of the user's; as it is written where that can be read, else as it is called once.

    What is called once would forget an `if`: PyTorch warns of it, and the caller refuses then.
    """
    held, kind = network.holding(theta).requires_grad_(False), network.kind
    with suppress(Exception):  # much of Python is not TorchScript
        held = torch.jit.script(held)

    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = held

        def forward(self, x: Array) -> Array:
            return self.module(x.to(kind)).double()

    return Own()


def _action(torch: Module, space: spaces.Space, bounds: str) -> Step:
    """How numbers `[O]` become an action, by the formulas of `outputs_of`."""
    if isinstance(space, spaces.Box):
        return _box(torch, space, bounds)
    if isinstance(space, spaces.MultiBinary):
        return lambda y: (y > 0).to(torch.int8).reshape(space.shape)
    if isinstance(space, spaces.MultiDiscrete):
        counts, first = space.nvec.ravel().tolist(), _tensor(torch, np.ravel(space.start))
        kind = _tensor(torch, np.zeros(0, space.dtype)).dtype
        return lambda y: (
            (first + torch.stack([part.argmax() for part in y.split(counts)]))
            .to(kind)
            .reshape(space.shape)
        )
    assert isinstance(space, spaces.Discrete)
    start = int(space.start)
    if space.n == 2:
        return lambda y: start + (y > 0).long().reshape([])
    return lambda y: start + y.argmax()


def _box(torch: Module, space: spaces.Box, bounds: str) -> Step:
    *arrays, whole = scaled(space)
    least, most, limited, middle, half = (_tensor(torch, array) for array in arrays)
    kind = _tensor(torch, np.zeros(0, space.dtype)).dtype

    def act(y: Array) -> Array:
        if bounds == SQUASH:
            y = torch.where(limited, torch.tanh(y), y)
        y = torch.minimum(torch.maximum(middle + half * y, least), most)
        return (torch.round(y) if whole else y).to(kind).reshape(space.shape)

    return act
