"""Modules of PyTorch, Flax and Equinox as networks; none of these is imported unless one is given.

All trainable arrays lie in one vector theta `[D]`, one after the other, each row by row: PyTorch's
in the order of `parameters()`, those that need no gradient left as they are; Flax's and Equinox's
in the order of `jax.tree.leaves`. `theta` of a network is what the module itself holds (a
module of `flax.linen` holds nothing: then what it is initialised to with key 0). Numbers go in and
come out as float64, and are of the module's own precision in between. Modules are taken as they
are for use, not for training: dropout is off, statistics of batches are those that were kept. The
user's own module is never changed. `holding(theta)` gives one of its kind back that has learned,
and `state(theta)` its arrays by the names that its library knows them by.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from importlib import import_module
from itertools import accumulate, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError, check_shape, is_traced
from recoup.core.types import Array, Given, Module, Plain
from recoup.tasks.policies.networks import Function

LIBRARIES = ("torch.nn", "flax.linen", "flax.nnx", "equinox")  # where classes named Module are


class TrainableArray(NamedTuple):
    """One trainable array of a module."""

    layer: str  # that it belongs to
    name: str  # in its layer
    shape: tuple[int, ...]
    fan_in: int  # inputs of each output, were it a layer's weights

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)

    @property
    def weighs(self) -> bool:
        """Whether it holds a layer's weights; else it is a bias, or something like it."""
        return len(self.shape) > 1 and self.name != "bias"


def adapted(given: Given, inputs: int) -> Any:
    """A network of `inputs` numbers `[I]` for a module of another library; anything else as it is.

    So is a module that has `act` and a number of `parameters`, or `bound`: it is a policy, or a
    network, already.
    """
    library = library_of(given)
    if library is None or hasattr(given, "bound") or _is_policy(given):
        return given
    name = type(given).__name__
    with _explained(name, inputs):
        if library == "torch.nn":
            return TorchModule(name, given, inputs)
        return JaxModule(name, JAX_PARTS[library](given, inputs), inputs, library != "equinox")


def library_of(given: Given) -> str | None:
    """Which library an object is a module of, told by the names of its classes."""
    for base in type(given).__mro__:
        for library in LIBRARIES:
            if base.__name__ == "Module" and f"{base.__module__}.".startswith(f"{library}."):
                return library
    return None


def is_module(network: Any) -> bool:
    """Whether a network is a module of another library, adapted."""
    return isinstance(network, (TorchModule, JaxModule))


def _is_policy(given: Given) -> bool:
    """Whether a module is a policy of the user's: PyTorch's `parameters` are not a number."""
    return hasattr(given, "act") and isinstance(getattr(given, "parameters", None), int)


@contextmanager
def _explained(name: str, inputs: int) -> Iterator[None]:
    """What goes wrong when a module is first called, in a sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as wrong:
        why = f"{wrong}".strip().split("\n")[0] or type(wrong).__name__
        raise InputError(
            f"the module {name} cannot be called with [I] = [{inputs}] numbers: {why}"
        ) from wrong


def _outputs(name: str, inputs: int, gave: Any) -> int:
    """How many numbers a module gives, O, once they are all that it gives."""
    shape = getattr(gave, "shape", None)
    if shape is not None and len(shape) == 1:
        return int(shape[0])
    what = f"a {type(gave).__name__}" if shape is None else f"an array of shape {list(shape)}"
    raise InputError(
        f"a module that is a policy must make [O] numbers of [I] = [{inputs}], and {name} gave "
        f"{what}; one with a memory needs a policy of your own, with `start` and `act`."
    )


def _checked(name: str, parts: Sequence[TrainableArray]) -> tuple[TrainableArray, ...]:
    """The parts of a module that has any."""
    if not sum(part.size for part in parts):
        raise InputError(f"the module {name} has nothing to train.")
    return tuple(parts)


def _ends(parts: Sequence[TrainableArray]) -> list[tuple[int, int]]:
    """Where each part begins and ends in theta."""
    return list(pairwise(accumulate((part.size for part in parts), initial=0)))


def _spread(parts: Sequence[TrainableArray]) -> np.ndarray:
    """Standard deviations `[D]`: one over the root of the fan-in of the weights.

    A bias takes that of the weights of its layer; where these are not to be found, one over the
    root of its own size.
    """
    fans = {part.layer: part.fan_in for part in reversed(parts) if part.weighs}
    each = [part.fan_in if part.weighs else fans.get(part.layer, part.size) for part in parts]
    return np.concatenate(
        [np.full(part.size, max(fan, 1) ** -0.5) for part, fan in zip(parts, each, strict=True)]
    )


class TorchModule:
    """A module of PyTorch as a network, on the CPU."""

    def __init__(self, name: str, module: Module, inputs: int) -> None:
        torch = import_module("torch")
        self.name = name  # of its class
        self._module = copy.deepcopy(module).to("cpu").eval()
        kinds = [one.dtype for one in module.parameters() if one.is_floating_point()]
        self.kind = kinds[0] if kinds else torch.float32  # of numbers that it is called with
        with torch.no_grad():  # called before its arrays are looked at: some are made only now
            gave = self._module(torch.zeros(inputs, dtype=self.kind))
            self.outputs = _outputs(name, inputs, gave)
            trained = _trained(self._module)
            self.parts = _checked(name, [_torch_part(*named) for named in trained])
            flat = torch.cat([array.double().reshape(-1) for _, array in trained])
            self.theta = flat.numpy().copy()

    @property
    def parameters(self) -> int:
        """How many numbers are trained, D."""
        return len(self.theta)

    def spread(self) -> np.ndarray:
        """Standard deviations `[D]` to start from."""
        return _spread(self.parts)

    def bound(self, theta: Array) -> Function:
        """The function `[I] -> [O]` of one theta: a copy of the module that holds it.

        Copying costs less than a few calls of `torch.func.functional_call` would.
        """
        if is_traced(theta):
            raise InputError(
                "a module of PyTorch cannot be rolled out in JAX: give one of Flax or Equinox."
            )
        torch, kind, module = import_module("torch"), self.kind, self.holding(theta)

        def function(x: Array) -> np.ndarray:
            with torch.no_grad():
                return module(torch.tensor(x, dtype=kind)).double().numpy()

        return function

    def holding(self, theta: Array) -> Any:
        """A module of the user's class that holds theta, to be used: a copy, theirs to change."""
        check_shape("theta", theta, "[D]", (self.parameters,))
        torch, module = import_module("torch"), copy.deepcopy(self._module)
        flat = torch.tensor(np.asarray(theta, float))
        with torch.no_grad():
            for (_, array), ends in zip(_trained(module), _ends(self.parts), strict=True):
                array.copy_(flat[slice(*ends)].reshape(array.shape))
        return module

    def state(self, theta: Array) -> dict[str, np.ndarray]:
        """All arrays of such a module by their names in its `state_dict()`."""
        torch = import_module("torch")
        found = {
            name: array.float() if array.dtype == torch.bfloat16 else array
            for name, array in self.holding(theta).state_dict().items()
            if isinstance(array, torch.Tensor)
        }
        return {name: array.numpy() for name, array in found.items()}


def _trained(module: Module) -> list[tuple[str, Any]]:
    """Names and arrays of what is trained; one that several layers share comes once."""
    return [(name, array) for name, array in module.named_parameters() if array.requires_grad]


def _torch_part(path: str, array: Array) -> TrainableArray:
    layer, _, name = path.rpartition(".")
    return TrainableArray(layer, name, tuple(array.shape), prod(array.shape[1:]))


class Taken(NamedTuple):
    """A module of Flax or Equinox, taken apart."""

    params: Given  # a tree of what is trained
    whole: Callable[[Any], Any]  # params -> what the user calls, with all that is fixed
    call: Callable[[Any, Any], Any]  # that, x -> y
    arrays: Callable[[Any], Any]  # that -> its arrays as a tree


class JaxModule:
    """A module of Flax or Equinox as a network, compiled once.

    Bound to a theta of JAX, it is a function of JAX, which can be traced.
    """

    def __init__(self, name: str, taken: Taken, inputs: int, outputs_last: bool) -> None:
        import jax

        self.name = name  # of its class
        self._taken = taken
        arrays = jax.tree_util.tree_flatten_with_path(taken.params)[0]
        self.parts = _checked(name, [_jax_part(*one, outputs_last) for one in arrays])
        self._kinds = [np.dtype(array.dtype) for _, array in arrays]
        self.theta = np.concatenate([np.asarray(array, float).ravel() for _, array in arrays])
        gave = jax.eval_shape(self._called, self.theta, np.zeros(inputs))
        self.outputs = _outputs(name, inputs, gave)

    @property
    def parameters(self) -> int:
        """How many numbers are trained, D."""
        return len(self.theta)

    def spread(self) -> np.ndarray:
        """Standard deviations `[D]` to start from."""
        return _spread(self.parts)

    def bound(self, theta: Array) -> Function:
        """The function `[I] -> [O]` of one theta, in NumPy or in JAX as theta is."""
        check_shape("theta", theta, "[D]", (self.parameters,))
        if not isinstance(theta, np.ndarray):
            return partial(self._called, theta)
        import jax.numpy as jnp

        compiled, weights = self._compiled, jnp.asarray(theta)
        return lambda x: np.asarray(compiled(weights, np.asarray(x)), float)

    @cached_property
    def _compiled(self) -> Callable[[Any, Any], Any]:
        import jax

        return jax.jit(self._called)

    def _called(self, theta: Array, x: Array) -> Array:
        """What the module gives for x with its arrays cut out of theta."""
        return self._taken.call(self._whole(theta), x.astype(self._kinds[0]))

    def _whole(self, theta: Array) -> Array:
        import jax

        kinds, ends = self._kinds, _ends(self.parts)
        arrays = [
            theta[slice(*at)].reshape(part.shape).astype(kind)
            for part, at, kind in zip(self.parts, ends, kinds, strict=True)
        ]
        return self._taken.whole(jax.tree.unflatten(jax.tree.structure(self._taken.params), arrays))

    def holding(self, theta: Array) -> Any:
        """What the user calls, with theta in it: a module of their class, set to be used.

        Of `flax.linen`, whose modules hold nothing, the variables that `apply` takes.
        """
        import jax
        import jax.numpy as jnp

        check_shape("theta", theta, "[D]", (self.parameters,))
        with jax.enable_x64(True):  # a module of 64 bits keeps them
            return self._whole(jnp.asarray(theta, float))

    def state(self, theta: Array) -> dict[str, np.ndarray]:
        """All arrays of floats that the module then holds, by where they are in it."""
        import jax
        import jax.numpy as jnp

        tree = self._taken.arrays(self.holding(theta))
        leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
        return {
            ".".join(_names(path)): np.asarray(leaf, None if leaf.dtype.kind == "f" else float)
            for path, leaf in leaves
            if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        }


def _jax_part(path: tuple[Any, ...], array: Array, outputs_last: bool) -> TrainableArray:
    *layer, name = _names(path)
    ins = array.shape[:-1] if outputs_last else array.shape[1:]
    return TrainableArray(".".join(layer), name, tuple(array.shape), prod(ins))


def _names(path: tuple[Any, ...]) -> list[str]:
    """Where an array is in a tree."""
    import jax

    names = jax.tree_util.keystr(path, simple=True, separator=".").split(".")
    if names[-1] == "value" and len(names) > 1:  # of a variable of nnx
        names = names[:-1]
    return names


def _linen(module: Module, inputs: int) -> Taken:
    """A module of `flax.linen`: its parameters are trained, the rest is fixed."""
    import jax

    made = dict(module.init(jax.random.key(0), np.zeros(inputs, np.float32)))
    params = made.pop("params", {})
    return Taken(params, partial(_variables, made), module.apply, _itself)


def _variables(fixed: Plain, params: Given) -> Plain:
    import jax

    return {"params": params, **jax.tree.map(_itself, fixed)}  # in dictionaries of its own


def _nnx(module: Module, inputs: int) -> Taken:
    """A module of `flax.nnx`: its parameters are trained, the rest is fixed."""
    nnx = import_module("flax.nnx")
    used = nnx.clone(module)
    used.eval()
    graph, params, fixed = nnx.split(used, nnx.Param, ...)
    return Taken(params, partial(_merged, graph, fixed), _call, _nnx_state)


def _merged(graph: Any, fixed: Any, params: Given) -> Any:
    return import_module("flax.nnx").merge(graph, params, fixed)


def _nnx_state(module: Module) -> Any:
    return import_module("flax.nnx").state(module)


def _equinox(module: Module, inputs: int) -> Taken:
    """A module of Equinox: its arrays of floats are trained, the rest is fixed."""
    equinox = import_module("equinox")
    used = equinox.nn.inference_mode(module)
    params, fixed = equinox.partition(used, equinox.is_inexact_array)
    return Taken(params, partial(_combined, fixed), _call, _itself)


def _combined(fixed: Any, params: Given) -> Any:
    return import_module("equinox").combine(params, fixed)


def _call(module: Module, x: Array) -> Array:
    return module(x)


def _itself(given: Given) -> Any:
    return given


JAX_PARTS = {"flax.linen": _linen, "flax.nnx": _nnx, "equinox": _equinox}
