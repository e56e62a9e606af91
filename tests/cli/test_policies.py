"""`recoup export-policy`: a learned policy for other programs, and what it says to bad input."""

import json
import os
import sys

import numpy as np
import own_tasks
import pytest
from program import recoup as program

import recoup

HOW = {"method": "pgpe", "episodes": 24, "batch": 3, "horizon": 5, "test_episodes": 2}
SEEN = np.array([0.4, 0.2], np.float32)
pytestmark = pytest.mark.usefixtures("sketches")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose task is code, which is never needed here."""
    return recoup.train(own_tasks.Walk, **HOW, out=tmp_path_factory.mktemp("run") / "r")


def export(run, *words, cwd):
    return program("export-policy", run.out, *words, cwd=cwd)


def test_without_a_form_it_is_a_plain_file(run, tmp_path):
    done = export(run, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "policy.npz\n"), done.stderr
    assert "after iteration 8 of 8: observation float32[2] -> Box(-1.0, 1.0" in done.stderr
    np.testing.assert_array_equal(
        recoup.load_policy(tmp_path / "policy.npz")(SEEN), run.policy(SEEN)
    )


def test_json_says_which_it_is(run, tmp_path):
    done = export(run, "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"policy": "policy.npz", "iteration": 8, "iterations": 8}
    assert done.stderr == ""


@pytest.mark.parametrize("which", ["last", "best", "3", "0"])
def test_any_policy_of_the_run_can_be_had(which, run, tmp_path):
    done = export(run, "p.npz", "--which", which, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    move = {"last": 8, "best": run.best.iteration}.get(which) or int(which)
    assert f"after iteration {move} of 8" in done.stderr
    np.testing.assert_array_equal(recoup.load_policy(tmp_path / "p.npz").theta, run.means[move])


@pytest.mark.parametrize("words", ["--onnx", "--onnx policy.onnx", "policy.onnx --onnx"])
def test_onnx_with_a_name_and_without(words, run, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    done = export(run, *words.split(), "--which", "best", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "policy.onnx\n"), done.stderr
    session = runtime.InferenceSession(
        str(tmp_path / "policy.onnx"), providers=["CPUExecutionProvider"]
    )
    (action,) = session.run(None, {"observation": SEEN})
    np.testing.assert_allclose(action, run.learned_policy("best")(SEEN), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # TorchScript is an old form
def test_torchscript(run, tmp_path):
    torch = pytest.importorskip("torch")
    done = export(run, "--torchscript", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "policy.pt\n"), done.stderr
    got = torch.jit.load(str(tmp_path / "policy.pt"))(torch.from_numpy(SEEN))
    np.testing.assert_allclose(got.numpy(), run.policy(SEEN), rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--onnx policy.npz", "policy.npz must end in .onnx with --onnx."),
        ("--torchscript policy.onnx", "must end in .pt with --torchscript. For .onnx give --onnx."),
        ("policy.onnx", "policy.onnx must end in .npz. For .onnx give --onnx."),
        ("study.db", "study.db must end in .npz."),
        ("--onnx --torchscript", "give --onnx or --torchscript, not both."),
        ("--which newest", "which must be last, best or a move from 0 to 8, got 'newest'."),
        ("--which 9", "which must be last, best or a move from 0 to 8, got 9."),
        ("--which -1", "which must be last, best or a move from 0 to 8, got '-1'."),
        ("not/there.npz", "not does not exist: make it, or name another place."),
        ("--policy nothing", "the policy 'nothing' must be written module:name."),
        ("--policy own_tasks:Recurent", "own_tasks has no 'Recurent'. Did you mean 'Recurrent'?"),
        ("--policy own_tasks:Recurrent", "its policy is linear, which the file holds"),
    ],
)
def test_wrong_use_is_one_sentence_and_nothing_is_written(words, sentence, run, tmp_path):
    done = export(run, *words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_there_is_left_alone_but_by_force(run, tmp_path):
    (tmp_path / "policy.npz").write_text("mine")
    done = export(run, cwd=tmp_path)
    assert done.returncode == 2
    assert "policy.npz exists already" in done.stderr
    assert "--force" in done.stderr
    assert (tmp_path / "policy.npz").read_text() == "mine"
    assert export(run, "--force", cwd=tmp_path).returncode == 0
    assert recoup.load_policy(tmp_path / "policy.npz").theta.tolist() == run.mean.tolist()


@pytest.mark.parametrize(
    ("option", "package", "words"),
    [
        ("--onnx", "onnx", "pip install 'recoup[onnx]'"),
        ("--torchscript", "torch", "`pip install torch`"),
    ],
)
def test_a_package_that_is_missing_is_named(option, package, words, run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    done = export(run, option, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_task_without_a_policy_file_is_said(tmp_path):
    recoup.train("toy", iterations=1, out=tmp_path / "r")
    done = program("export-policy", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert "toy has no policy of an environment" in done.stderr


NETS = """
import equinox, jax
import jax.numpy as jnp

def net():
    return equinox.nn.MLP(2, 1, 3, 1, jnp.tanh, key=jax.random.key(0))

made = net()
"""


@pytest.mark.parametrize("name", ["net", "made"])
def test_a_network_of_ones_own_is_named_again(name, tmp_path, monkeypatch):
    pytest.importorskip("equinox")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nets_to_export", raising=False)
    (tmp_path / "nets_to_export.py").write_text(NETS)
    import nets_to_export

    run = recoup.train(
        own_tasks.Walk, policy=nets_to_export.net(), **HOW, keep_every=4, out=tmp_path / "r"
    )
    done = program("export-policy", "r", "p.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert "an object of Python: give it again" in done.stderr
    done = program(
        "export-policy", "r", "p.npz", "--policy", f"nets_to_export:{name}", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    network = recoup.load_policy(tmp_path / "p.npz", nets_to_export.net()).network()
    np.testing.assert_allclose(network(SEEN), run.network()(SEEN), rtol=1e-6)
    with np.load(tmp_path / "r" / "policies" / "000004.npz") as kept:
        assert kept["weights/layers.0.weight"].shape == (3, 2)
    monkeypatch.delitem(sys.modules, "nets_to_export", raising=False)
