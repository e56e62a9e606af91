"""The processor's and the accelerator's pass over samples, whatever this machine has."""

import jax

from recoup.core import columns, kernels, row_sums, sweeps
from recoup.core.families.gaussian import diagonal_gaussian

PASSES = {
    "processor": lambda processor, accelerator, *args: processor(*args),
    "accelerator": lambda processor, accelerator, *args: accelerator(*args),
}


def take(monkeypatch, name, chunk=sweeps.CACHE_CHUNK, room=sweeps.ROOM):
    """For one test, what is traced goes by this pass, with chunks of so many numbers.

    What was traced before stays as it was: a test traces functions of its own.
    """
    monkeypatch.setattr(sweeps, "by_device", PASSES[name])
    monkeypatch.setattr(sweeps, "CACHE_CHUNK", chunk)
    monkeypatch.setattr(sweeps, "ROOM", room)


class Counted:
    """A family that counts the densities that a compiled program computes."""

    def __init__(self):
        self.seen, plain = 0, diagonal_gaussian()

        def log_ratio(rho, reference, theta):
            jax.debug.callback(self.count, theta[0] + rho.eta[0])
            return plain.log_ratio(rho, reference, theta)

        def log_ratios(rhos, reference, theta):
            found = plain.log_ratios(rhos, reference, theta)
            jax.debug.callback(lambda x: self.count(x, x.size), found)
            return found

        self.family = plain._replace(name="counted", log_ratio=log_ratio, log_ratios=log_ratios)

    def count(self, _, many=1):
        self.seen += many

    def during(self, call):
        """What a call gives, and how many densities it has computed."""
        before = self.seen
        result = jax.block_until_ready(call())
        jax.effects_barrier()
        return result, self.seen - before


class ForcedKernel:
    """The kernels of `core.row_sums` and `core.columns` for one test, by Pallas' interpreter.

    In steps of `wide` coordinates, and for however few programs.
    """

    def __init__(self, monkeypatch, wide):
        self.calls = 0
        monkeypatch.setattr(kernels, "on_cuda", lambda: True)
        monkeypatch.setattr(kernels, "chosen", self.chosen)
        for module, least in ((row_sums, "XLA_ROWS"), (columns, "XLA_COLUMNS")):
            monkeypatch.setattr(module, "WIDE", wide)
            monkeypatch.setattr(module, least, wide)
        monkeypatch.setattr(row_sums, "BUSY_PROGRAMS", 1)
        monkeypatch.setattr(columns, "TALL", 2)
        monkeypatch.setattr(columns, "SHARES", 2)

    def chosen(self, kernel, plain, *args):
        self.calls += 1
        return kernel(*args, interpret=True)
