"""Networks of other libraries, of two layers with tanh between them."""

import jax
import jax.numpy as jnp
import pytest


def made(kind, inputs=3, hidden=5, outputs=2):
    """A module of two layers with tanh between them."""
    return {"torch": torch_module, "linen": linen, "nnx": nnx_module, "equinox": equinox}[kind](
        inputs, hidden, outputs
    )


def torch_module(inputs, hidden, outputs):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = torch.nn.Linear(inputs, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, outputs)
    return torch.nn.Sequential(*layers)


def linen(inputs, hidden, outputs):
    nn = pytest.importorskip("flax.linen")

    class Layers(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.tanh(nn.Dense(hidden, bias_init=nn.initializers.normal(1.0))(x))
            return nn.Dense(outputs, bias_init=nn.initializers.normal(1.0))(x)

    return Layers()


def nnx_module(inputs, hidden, outputs):
    nnx = pytest.importorskip("flax.nnx")

    class Layers(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(inputs, hidden, rngs=rngs)
            self.second = nnx.Linear(hidden, outputs, rngs=rngs)
            self.second.bias[...] = jnp.arange(1.0, outputs + 1)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            return self.second(self.dropout(jnp.tanh(self.first(x))))

    return Layers(nnx.Rngs(0))


def equinox(inputs, hidden, outputs):
    eqx = pytest.importorskip("equinox")
    return eqx.nn.MLP(inputs, outputs, hidden, 1, jnp.tanh, key=jax.random.key(0))
