"""A policy of ours as a graph of ONNX: an observation in, as the environment gives it; an action.

One input for each part of an observation, in its own shape and type, one output, the action. All
numbers in between are float64, as in `SpacePolicy`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from recoup.checks import InputError, not_installed
from recoup.core.types import Array
from recoup.tasks.policies.environment_spaces import SQUASH, scaled
from recoup.tasks.policies.leaves import ObservationLeaf, leaves, named
from recoup.tasks.policies.networks import MLP, Kernels, Linear, layers_of
from recoup.tasks.policies.policy import FARTHEST, Policy, SpacePolicy, words_of

OPSET, IR = 17, 8  # such as programs of 2022 read, too


def onnx_bytes(policy: Policy, theta: np.ndarray) -> bytes:
    """A policy as a file of ONNX."""
    if not isinstance(policy, SpacePolicy) or not isinstance(
        policy.network, (Linear, Kernels, MLP)
    ):
        raise InputError(
            f"ONNX is written of linear, kernels and mlp policies, and this is a policy of yours "
            f"({words_of(policy)}): give a module of PyTorch as TorchScript (.pt), or write it "
            "with what its library offers, from `run.network()`."
        )
    try:
        import onnx
    except ImportError:
        raise not_installed("ONNX needs the package onnx", "onnx") from None
    parts = leaves(policy.observations)
    graph = _Graph(onnx)
    y = _network(graph, policy.network, theta, _inputs(graph, policy, parts))
    action, kind = _action(graph, policy, y)
    name = named([leaf.name for leaf in parts], "action")
    graph.nodes.append(onnx.helper.make_node("Identity", [action], [name]))
    shape = policy.actions.shape or ()
    made = onnx.helper.make_graph(
        graph.nodes,
        "policy",
        [graph.value(leaf.name, leaf.dtype, leaf.shape) for leaf in parts],
        [graph.value(name, np.dtype(kind), shape)],
        graph.constants,
    )
    opset = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(made, opset_imports=opset, ir_version=IR, producer_name="recoup")
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


class _Graph:
    """Nodes and constants, gathered; what makes one gives its name."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, array: Array) -> str:
        name = f"recoup:constant{len(self.constants)}"
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def node(self, what: str, *inputs: str, **how: Any) -> str:
        name = f"recoup:{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(what, list(inputs), [name], **how))
        return name

    def value(self, name: str, kind: np.dtype[Any], shape: Sequence[int]) -> Any:
        number = self.onnx.helper.np_dtype_to_tensor_dtype(kind)
        return self.onnx.helper.make_tensor_value_info(name, number, list(shape))

    def cast(self, name: str, kind: Any) -> str:
        number = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return self.node("Cast", name, to=number)

    def shaped(self, name: str, shape: Sequence[int]) -> str:
        return self.node("Reshape", name, self.constant(np.array(shape, np.int64)))


def _inputs(graph: _Graph, policy: SpacePolicy, parts: Sequence[ObservationLeaf]) -> str:
    """The numbers `[I]` that a network sees."""
    x = graph.node("Concat", *(_flat(graph, leaf) for leaf in parts), axis=0)
    if policy.scale is None:
        return x
    mean, std = (graph.constant(np.array(part)) for part in policy.scale[:2])
    x = graph.node("Div", graph.node("Sub", x, mean), std)
    ends = (graph.constant(np.array(end)) for end in (-FARTHEST, FARTHEST))
    return graph.node("Clip", x, *ends)


def _flat(graph: _Graph, leaf: ObservationLeaf) -> str:
    flat = graph.shaped(leaf.name, [-1])
    if leaf.entry is None or leaf.value is None:
        return graph.cast(flat, float)
    chosen = graph.node("Gather", graph.cast(flat, np.int64), graph.constant(leaf.entry))
    return graph.cast(graph.node("Equal", chosen, graph.constant(leaf.value)), float)


def _network(graph: _Graph, network: Linear | Kernels | MLP, theta: np.ndarray, x: str) -> str:
    """What a network makes of them, numbers `[O]`."""
    if isinstance(network, Kernels):
        widths = np.array(network.widths)
        x = graph.node("Div", x, graph.constant(widths))
        x = graph.node("Sub", x, graph.constant(np.array(network.centres) / widths))
        x = graph.node(
            "ReduceSum", graph.node("Mul", x, x), graph.constant(np.array([1])), keepdims=0
        )
        x = graph.node("Exp", graph.node("Mul", x, graph.constant(np.array(-0.5))))
    for number, (weights, bias) in enumerate(layers_of(network, theta)):
        x = graph.node("Tanh", x) if number else x
        x = graph.node("MatMul", x, graph.constant(weights))
        x = x if bias is None else graph.node("Add", x, graph.constant(bias))
    return x


def _action(graph: _Graph, policy: SpacePolicy, y: str) -> tuple[str, Any]:
    """The action that numbers `[O]` become, and its type; by the formulas of `outputs_of`."""
    space = policy.actions
    if isinstance(space, spaces.Box):
        return _box(graph, space, policy.bounds, y), space.dtype
    zero = graph.constant(np.array(0.0))
    if isinstance(space, spaces.MultiBinary):
        chosen = graph.cast(graph.node("Greater", y, zero), np.int8)
        return graph.shaped(chosen, space.shape), np.int8
    if isinstance(space, spaces.MultiDiscrete):
        return _choices(graph, space, y), space.dtype
    assert isinstance(space, spaces.Discrete)
    two = space.n == 2
    chosen = (
        graph.cast(graph.node("Greater", y, zero), np.int64)
        if two
        else graph.node("ArgMax", y, axis=0)
    )
    first = graph.constant(np.array([int(space.start)]))
    return graph.shaped(graph.node("Add", chosen, first), []), np.int64


def _choices(graph: _Graph, space: spaces.MultiDiscrete, y: str) -> str:
    counts, chosen = space.nvec.ravel(), []
    for end, count in zip(np.cumsum(counts), counts, strict=True):
        ends = (graph.constant(np.array([at])) for at in (end - count, end))
        chosen.append(graph.node("ArgMax", graph.node("Slice", y, *ends), axis=0))
    first = graph.constant(np.ravel(space.start).astype(np.int64))
    action = graph.node("Add", graph.node("Concat", *chosen, axis=0), first)
    return graph.shaped(graph.cast(action, space.dtype), space.shape)


def _box(graph: _Graph, space: spaces.Box, bounds: str, y: str) -> str:
    low, high, bounded, middle, half, whole = scaled(space)
    if bounds == SQUASH:
        y = graph.node("Where", graph.constant(bounded), graph.node("Tanh", y), y)
    y = graph.node("Mul", y, graph.constant(half))
    y = graph.node("Add", y, graph.constant(middle))
    y = graph.node("Max", y, graph.constant(low))
    y = graph.node("Min", y, graph.constant(high))
    y = graph.node("Round", y) if whole else y
    return graph.shaped(graph.cast(y, space.dtype), space.shape)
