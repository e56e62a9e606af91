"""The processor's and the accelerator's pass over samples, whatever this machine has."""

from recoup.core import sweeps

PASSES = {
    "processor": lambda processor, accelerator, *args: processor(*args),
    "accelerator": lambda processor, accelerator, *args: accelerator(*args),
}


def take(monkeypatch, name, chunk=sweeps.CHUNK, room=sweeps.ROOM):
    """For one test, what is traced goes by this pass, with chunks of so many numbers.

    What was traced before stays as it was: a test traces functions of its own.
    """
    monkeypatch.setattr(sweeps, "by_device", PASSES[name])
    monkeypatch.setattr(sweeps, "CHUNK", chunk)
    monkeypatch.setattr(sweeps, "ROOM", room)
