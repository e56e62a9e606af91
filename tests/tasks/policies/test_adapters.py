import subprocess
import sys
from typing import ClassVar

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from foreign_networks import made
from gymnasium import spaces
from sentences import TORCH_IN_JAX

import recoup
from recoup.checks import InputError
from recoup.tasks.policies.adapters import adapted
from recoup.tasks.policies.networks import Linear
from recoup.tasks.policies.policy import SpacePolicy
from recoup.tasks.policies.policy_files import SavedPolicy, save_policy

KINDS = ["torch", "linen", "nnx", "equinox"]
X = np.array([0.3, -1.2, 0.7])
WEIGHTS_FIRST = [(15, 3), (5, 3), (10, 5), (2, 5)]  # sizes and fan-ins, in the order of theta
BIAS_FIRST = [(5, 3), (15, 3), (2, 5), (10, 5)]


def own_pass(kind, module, x):
    """What the library itself gives, of a module in use."""
    if kind == "torch":
        import torch

        with torch.no_grad():
            return module(torch.tensor(x, dtype=torch.float32)).numpy()
    x = jnp.asarray(x, jnp.float32)
    if kind == "linen":
        return module.apply(module.init(jax.random.key(0), x), x)
    if kind == "nnx":
        return module.second(jnp.tanh(module.first(x)))
    return module(x)


def arrays(kind, module):
    """All numbers that a module holds, copied."""
    if kind == "torch":
        return [array.detach().numpy().copy() for array in module.parameters()]
    if kind == "linen":
        return []
    if kind == "nnx":
        from flax import nnx

        module = nnx.state(module, nnx.Param)
    return [np.array(leaf) for leaf in jax.tree.leaves(module) if hasattr(leaf, "dtype")]


@pytest.mark.parametrize("kind", KINDS)
def test_at_its_own_weights_a_module_gives_what_its_library_gives(kind):
    module = made(kind)
    network = adapted(module, 3)
    assert (network.parameters, network.outputs) == (32, 2)
    assert network.theta.shape == (32,)
    assert np.all(np.isfinite(network.theta))
    got = network.bound(network.theta)(X)
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got, own_pass(kind, module, X), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_theta_holds_the_arrays_one_after_the_other(kind):
    """Two layers written out in NumPy, their weights cut out of theta."""
    network = adapted(made(kind), 3)
    theta = np.random.default_rng(1).normal(size=32)
    got = network.bound(theta)(X.astype(np.float32))
    if kind in ("torch", "equinox"):  # weights [outputs, inputs], then the bias
        first, b1 = theta[:15].reshape(5, 3).T, theta[15:20]
        second, b2 = theta[20:30].reshape(2, 5).T, theta[30:]
    else:  # the bias, then the weights [inputs, outputs]
        b1, first = theta[:5], theta[5:20].reshape(3, 5)
        b2, second = theta[20:22], theta[22:].reshape(5, 2)
    np.testing.assert_allclose(got, np.tanh(X @ first + b1) @ second + b2, rtol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_spread_is_by_the_fan_in_of_each_layer(kind):
    sizes = WEIGHTS_FIRST if kind in ("torch", "equinox") else BIAS_FIRST
    want = np.concatenate([np.full(size, fan**-0.5) for size, fan in sizes])
    np.testing.assert_allclose(adapted(made(kind), 3).spread(), want)


@pytest.mark.parametrize("kind", KINDS)
def test_thetas_do_not_get_in_each_others_way_and_the_module_stays(kind):
    module = made(kind)
    before, was = arrays(kind, module), getattr(module, "training", None)
    network = adapted(module, 3)
    one, other = network.bound(network.theta), network.bound(2 * network.theta + 1)
    first = one(X)
    assert np.abs(other(X) - first).min() > 1e-3
    np.testing.assert_array_equal(one(X), first)
    for old, new in zip(before, arrays(kind, module), strict=True):
        np.testing.assert_array_equal(new, old)
    assert getattr(module, "training", None) == was
    if kind == "nnx":
        assert not module.dropout.deterministic


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_can_be_sent_to_another_process(kind):
    network = adapted(made(kind), 3)
    theta = network.theta + 0.1
    want = network.bound(theta)(X)  # compiled before it is sent
    sent = cloudpickle.loads(cloudpickle.dumps(network))
    np.testing.assert_array_equal(sent.bound(theta)(X), want)
    np.testing.assert_array_equal(sent.theta, network.theta)
    np.testing.assert_array_equal(sent.spread(), network.spread())


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_of_a_module_acts_within_bounds(kind):
    observes = spaces.Box(np.float32([-1, -1, -8]), np.float32([1, 1, 8]), dtype=np.float32)
    acts = spaces.Box(-2.0, 2.0, (1,), np.float32)
    network = adapted(made(kind, outputs=1), 3)
    policy = SpacePolicy(network, observes, acts)
    rng = np.random.default_rng(2)
    seen = np.float32([0.2, -0.9, 3.0])
    actions = [policy.bound(rng.normal(size=policy.parameters))(seen) for _ in range(20)]
    assert all(acts.contains(action) for action in actions)
    assert {-2.0, 2.0} < {float(action[0]) for action in actions}
    theta = 0.1 * network.theta
    np.testing.assert_allclose(policy.bound(theta)(seen), 2 * network.bound(theta)(seen), rtol=1e-6)


def called(kind, module, whole, x):
    """What the library itself gives, of what `network()` gave."""
    x = np.asarray(x, np.float32)
    if kind == "torch":
        import torch

        with torch.no_grad():
            return whole(torch.tensor(x)).numpy()
    return np.asarray(module.apply(whole, x) if kind == "linen" else whole(jnp.asarray(x)))


def learned(kind, tmp_path):
    """A module, a policy of it with another theta, and the file that it was saved to."""
    module = made(kind, outputs=1)
    bounds = np.float32([1, 1, 8])
    acts = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    policy = SpacePolicy(adapted(module, 3), spaces.Box(-bounds, bounds), acts)
    theta = np.random.default_rng(4).normal(size=policy.parameters)
    return module, SavedPolicy(policy, theta), save_policy(tmp_path / "p.npz", policy, theta)


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_comes_back_with_what_it_has_learned(kind, tmp_path):
    module, policy, path = learned(kind, tmp_path)
    before = arrays(kind, module)
    loaded = recoup.load_policy(path, made(kind, outputs=1))
    want = policy(X)
    for one in (policy, loaded):
        np.testing.assert_allclose(called(kind, module, one.network(), X), want, rtol=1e-5)
    if kind != "linen":
        assert type(policy.network()) is type(module)
    for old, new in zip(before, arrays(kind, module), strict=True):
        np.testing.assert_array_equal(new, old)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_back_can_be_changed_without_harm(kind, tmp_path):
    _, policy, _ = learned(kind, tmp_path)
    want, given = policy(X), policy.network()
    if kind == "torch":
        given[0].weight.data.zero_()
    elif kind == "nnx":
        given.first.kernel[...] = jnp.zeros((3, 5))
        given.train()
    elif kind == "linen":
        given["params"]["Dense_0"]["kernel"] = jnp.zeros((3, 5))
    np.testing.assert_array_equal(policy.begin()(X), want)
    again = called(kind, made(kind, outputs=1), policy.network(), X)
    np.testing.assert_allclose(again, want, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_alone_fills_a_module_again(kind, tmp_path):
    """Its arrays by name, with what the library itself offers."""
    _, policy, path = learned(kind, tmp_path)
    with np.load(path, allow_pickle=False) as file:
        found = {n.removeprefix("weights/"): file[n] for n in file if n.startswith("weights/")}
    other = made(kind, outputs=1)
    if kind == "torch":
        import torch

        other.load_state_dict({name: torch.from_numpy(a) for name, a in found.items()})
        whole = other
    elif kind == "linen":
        whole = nested(found)
    elif kind == "nnx":
        from flax import nnx

        state = nnx.state(other, nnx.Param)
        nnx.replace_by_pure_dict(state, nested(found))
        nnx.update(other, state)
        other.eval()
        whole = other
    else:
        whole = jax.tree_util.tree_map_with_path(
            lambda at, leaf: found.get(jax.tree_util.keystr(at, simple=True, separator="."), leaf),
            other,
        )
    np.testing.assert_allclose(called(kind, other, whole, X), policy(X), rtol=1e-5)


def nested(found):
    from flax.traverse_util import unflatten_dict

    return unflatten_dict({tuple(name.split(".")): a for name, a in found.items()})


def test_statistics_of_batches_come_back_too(tmp_path):
    """What is fixed is part of a network that has learned."""
    nn = pytest.importorskip("flax.linen")

    class Normed(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(1)(nn.BatchNorm(use_running_average=True)(x))

    acts = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    policy = SpacePolicy(adapted(Normed(), 3), spaces.Box(-1, 1, (3,)), acts)
    theta = np.random.default_rng(5).normal(size=policy.parameters)
    path = save_policy(tmp_path / "p.npz", policy, theta)
    whole = SavedPolicy(policy, theta).network()
    assert set(whole) == {"params", "batch_stats"}
    np.testing.assert_allclose(Normed().apply(whole, np.float32(X)), policy.bound(theta)(X), 1e-5)
    with np.load(path) as file:
        assert "weights/batch_stats.BatchNorm_0.mean" in file


def test_whole_state_of_torch_is_in_the_file(tmp_path):
    """What is fixed, shared or counted has its name as well."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)

    class Batched(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(*layers)
            self.layers[2].bias.requires_grad_(False)

        def forward(self, x):
            return self.layers(x[None])[0]

    acts = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    policy = SpacePolicy(adapted(Batched(), 3), spaces.Box(-1, 1, (3,)), acts)
    theta = np.random.default_rng(6).normal(size=policy.parameters)
    path = save_policy(tmp_path / "p.npz", policy, theta)
    want, other = policy.bound(theta)(X), Batched()
    with np.load(path) as file:
        state = {n[8:]: torch.from_numpy(file[n]) for n in file if n.startswith("weights/")}
    assert set(state) == set(other.state_dict())
    other.load_state_dict(state)
    np.testing.assert_allclose(called("torch", None, other.eval(), X), want, rtol=1e-5)


def test_what_is_no_module_of_anothers_is_said():
    policy = SpacePolicy(Linear(3, 1), spaces.Box(-1, 1, (3,)), spaces.Box(-1, 1, (1,)))
    with pytest.raises(InputError, match="linear policy, 4 parameters: no module of PyTorch"):
        SavedPolicy(policy, np.zeros(4)).network()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_module_cannot_be_called_with_is_said(kind):
    with pytest.raises(InputError, match=r"cannot be called with \[I\] = \[4\] numbers"):
        adapted(made(kind), 4) if kind != "linen" else adapted(_broken_linen(), 4)


def _broken_linen():
    nn = pytest.importorskip("flax.linen")

    class Broken(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(2)(x) + jnp.ones(3)

    return Broken()


def test_a_theta_of_another_size_is_refused():
    network = adapted(made("equinox"), 3)
    with pytest.raises(InputError, match=r"theta must have shape \[D\] = \[32\], got \[33\]"):
        network.bound(np.zeros(33))


def test_outputs_that_are_no_vector_are_refused_by_jax_modules():
    eqx = pytest.importorskip("equinox")
    with pytest.raises(InputError, match=r"MLP gave an array of shape \[\]; one with a memory"):
        adapted(eqx.nn.MLP(3, "scalar", 5, 1, key=jax.random.key(0)), 3)

    class Remembers(eqx.Module):
        weight: jax.Array

        def __call__(self, x):
            return x, self.weight @ x

    with pytest.raises(InputError, match="Remembers gave a tuple; one with a memory"):
        adapted(Remembers(jnp.ones((2, 3))), 3)


def test_outputs_that_are_no_vector_are_refused_by_torch_modules():
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"Sequential gave an array of shape \[1, 2\]"):
        adapted(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Unflatten(0, (1, 2))), 3)


def test_a_module_with_nothing_to_train_is_refused():
    eqx = pytest.importorskip("equinox")
    with pytest.raises(InputError, match="Lambda has nothing to train"):
        adapted(eqx.nn.Lambda(jnp.tanh), 3)


def test_modules_of_jax_are_traced_twice_for_any_number_of_thetas():
    """Once to see what comes out, once to be compiled."""
    eqx = pytest.importorskip("equinox")
    traced = []

    class Counted(eqx.Module):
        weight: jax.Array

        def __call__(self, x):
            traced.append(x)
            return self.weight @ x

    network = adapted(Counted(jnp.ones((2, 3))), 3)
    for i in range(5):
        got = network.bound(np.full(6, float(i)))(X)
        np.testing.assert_allclose(got, [i * X.sum()] * 2, rtol=1e-5, atol=1e-6)
    assert len(traced) == 2


@pytest.mark.parametrize("kind", ["linen", "nnx", "equinox"])
def test_modules_of_jax_can_be_traced(kind):
    network = adapted(made(kind), 3)
    thetas = network.theta + np.array([[0.0], [0.5], [-1.0]])

    def outputs(theta, x):
        return network.bound(theta)(x)

    got = jax.jit(jax.vmap(outputs, (0, None)))(thetas, X)
    want = [network.bound(theta)(X) for theta in thetas]
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_a_bias_with_two_axes_is_one():
    eqx = pytest.importorskip("equinox")

    class Convolves(eqx.Module):
        conv: eqx.nn.Conv1d
        gain: jax.Array

        def __call__(self, x):
            return (self.gain[:, None] * self.conv(x[None])).ravel()

    module = Convolves(eqx.nn.Conv1d(1, 4, 3, key=jax.random.key(0)), jnp.ones(4))
    network = adapted(module, 5)
    assert network.outputs == 12
    want = np.concatenate([np.full(16, 3**-0.5), np.full(4, 4**-0.5)])
    np.testing.assert_allclose(network.spread(), want)


def test_precision_is_the_modules_own():
    """A module of float32 rounds, under 64 bits too."""
    network = adapted(made("equinox"), 3)
    plain = network.bound(network.theta)(X)
    with jax.enable_x64(True):
        wide = network.bound(network.theta)(X)
    np.testing.assert_array_equal(np.float32(wide), wide)
    np.testing.assert_allclose(wide, plain, rtol=1e-6)


def test_what_torch_trains_is_what_needs_gradients_and_is_shared_once():
    torch = pytest.importorskip("torch")

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.second.weight = self.first.weight
            self.second.bias.requires_grad_(False)
            self.norm = torch.nn.LayerNorm(3)

        def forward(self, x):
            return self.norm(self.second(self.first(x)))

    torch.manual_seed(0)
    module = Tied()
    network = adapted(module, 3)
    assert network.parameters == 9 + 3 + 3 + 3
    np.testing.assert_allclose(network.spread(), 3**-0.5)
    theta = np.random.default_rng(3).normal(size=18)
    weights, bias, gain, shift = theta[:9].reshape(3, 3), theta[9:12], theta[12:15], theta[15:]
    y = weights @ (weights @ X + bias) + module.second.bias.detach().numpy()
    want = (y - y.mean()) / np.sqrt(y.var() + 1e-5) * gain + shift
    np.testing.assert_allclose(network.bound(theta)(X), want, rtol=1e-4)


def test_torch_is_in_use_not_in_training_and_leaves_observations_alone():
    torch = pytest.importorskip("torch")
    layers = torch.nn.ReLU(inplace=True), torch.nn.Dropout(0.5), torch.nn.LazyLinear(2)
    network = adapted(torch.nn.Sequential(*layers).double(), 3)
    seen, theta = X.copy(), np.arange(8.0)
    want = theta[:6].reshape(2, 3) @ np.maximum(X, 0) + theta[6:]
    np.testing.assert_allclose(network.bound(theta)(seen), want, rtol=1e-14)  # in float64
    np.testing.assert_array_equal(seen, X)


def test_torch_cannot_be_traced_by_jax():
    network = adapted(made("torch"), 3)
    with pytest.raises(InputError, match=TORCH_IN_JAX):
        jax.eval_shape(lambda theta: network.bound(theta)(X), network.theta)


def test_anything_else_is_returned_as_it_is():
    eqx = pytest.importorskip("equinox")

    class Own(eqx.Module):
        parameters: ClassVar[int] = 4

        def act(self, theta, seen):
            return theta[:3] @ seen + theta[3]

    for given in ("mlp", Linear(3, 2), Own(), object(), None, np.tanh):
        assert adapted(given, 3) is given


def test_libraries_are_not_imported_unless_given():
    code = (
        "import sys; from recoup.tasks.policies.adapters import adapted; adapted('mlp', 3); "
        "print(*sorted({'torch', 'flax', 'equinox'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""
