"""Policies as files for other programs: they act there as here."""

import os
from functools import cache

import numpy as np
import pytest
from foreign_networks import made
from gymnasium import spaces
from own_tasks import Recurrent
from policy_cases import ACTIONS, BOX, OBSERVATIONS, cases_of
from sentences import EXISTS

import recoup
from recoup.checks import InputError
from recoup.tasks.policies.adapters import adapted
from recoup.tasks.policies.export import export_policy
from recoup.tasks.policies.leaves import leaves, parts_of
from recoup.tasks.policies.networks import Linear
from recoup.tasks.policies.policy import SpacePolicy
from recoup.tasks.policies.policy_files import SavedPolicy

CASES = {name: rest for name, *rest in cases_of(1)}


@cache
def plain():
    """A small policy."""
    return SavedPolicy(SpacePolicy(Linear(2, 1), BOX, spaces.Box(-1, 1, (1,))), np.ones(3))


def close(got, want):
    """Whether it is the same action, of the same kind, but for the last bits of a sum."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)


def rounded(space, drawn):
    """Observations of the type that the space has."""
    top = isinstance(space, spaces.Box)
    return [np.asarray(one, space.dtype) if top else one for one in drawn]


class TestOnnx:
    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("onnx")

    @pytest.mark.parametrize("name", CASES)
    def test_it_acts_there_as_here(self, name, tmp_path):
        runtime = pytest.importorskip("onnxruntime")
        policy, theta, drawn = CASES[name]
        act = SavedPolicy(policy, theta)
        path = export_policy(act, tmp_path / "p.onnx")
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [leaf.name for leaf in leaves(policy.observations)]
        assert [given.name for given in session.get_inputs()] == names
        assert [out.name for out in session.get_outputs()] == ["action"]
        for seen in rounded(policy.observations, drawn):
            parts = parts_of(policy.observations, seen)
            (action,) = session.run(None, dict(zip(names, parts, strict=True)))
            close(action, act(seen))

    def test_an_observation_is_given_as_the_environment_gives_it(self, tmp_path):
        runtime = pytest.importorskip("onnxruntime")
        space = spaces.Dict(pos=BOX, action=spaces.Box(-1, 1, (1,)))  # what was done before
        policy = SavedPolicy(SpacePolicy(Linear(3, 1), space, ACTIONS["two"]), np.arange(4.0))
        path = export_policy(policy, tmp_path / "p.onnx")
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        assert session.get_outputs()[0].name == "next_action"
        for _ in range(5):
            seen = space.sample()
            assert session.run(None, seen)[0] == policy(seen)

    def test_the_same_policy_is_the_same_file(self, tmp_path):
        one, other = (export_policy(plain(), tmp_path / f"{n}.onnx") for n in "ab")
        assert one.read_bytes() == other.read_bytes()

    def test_what_is_not_ours_is_refused(self, tmp_path):
        module = SpacePolicy(adapted(made("equinox", inputs=2), 2), BOX, spaces.Box(-1, 1, (2,)))
        for policy in (module, Recurrent()):
            theta = np.zeros(policy.parameters)
            with pytest.raises(InputError, match="ONNX is written of linear, kernels and mlp"):
                export_policy(SavedPolicy(policy, theta), tmp_path / "p.onnx")
        assert os.listdir(tmp_path) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # TorchScript is an old form
class TestTorchScript:
    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("torch")

    def acts(self, path, policy, drawn):
        """Holds a file to what a policy does."""
        import torch

        module = torch.jit.load(str(path))
        for seen in drawn:
            parts = parts_of(policy.policy.observations, seen)
            got = module(*(torch.from_numpy(np.array(part)) for part in parts))
            close(got.numpy(), policy(seen))

    @pytest.mark.parametrize("name", CASES)
    def test_it_acts_there_as_here(self, name, tmp_path):
        policy, theta, drawn = CASES[name]
        act = SavedPolicy(policy, theta)
        path = export_policy(act, tmp_path / "p.pt")
        self.acts(path, act, rounded(policy.observations, drawn))

    @pytest.mark.parametrize("bounds", ["clip", "squash"])
    def test_a_module_of_ones_own_comes_along(self, bounds, tmp_path):
        space = OBSERVATIONS["dict"]
        network = adapted(made("torch", inputs=7, outputs=3), 7)
        policy = SpacePolicy(network, space, ACTIONS["box"], bounds)
        act = SavedPolicy(policy, np.random.default_rng(0).normal(size=policy.parameters))
        self.acts(export_policy(act, tmp_path / "p.pt"), act, [space.sample() for _ in range(9)])

    def test_what_a_module_decides_it_decides_there_too(self, tmp_path):
        import torch

        class Decides(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)

            def forward(self, x):
                if x[0] > 0:
                    return self.one(x)
                return self.other(x)

        space = spaces.Box(-1, 1, (2,))
        policy = SpacePolicy(adapted(Decides(), 2), space, spaces.Box(-9, 9, (1,)))
        act = SavedPolicy(policy, np.random.default_rng(0).normal(size=6))
        self.acts(export_policy(act, tmp_path / "p.pt"), act, [space.sample() for _ in range(20)])

    def test_one_that_cannot_be_written_is_said_and_nothing_is(self, tmp_path):
        import torch

        class Opaque(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.one = torch.nn.Linear(2, 1)

            def forward(self, x, **more):  # which TorchScript cannot read
                return self.one(x) if float(x[0]) > 0 else -self.one(x)

        policy = SpacePolicy(adapted(Opaque(), 2), BOX, spaces.Box(-9, 9, (1,)))
        with pytest.raises(InputError, match="Opaque, 3 parameters cannot be made TorchScript"):
            export_policy(SavedPolicy(policy, np.ones(3)), tmp_path / "p.pt")
        assert os.listdir(tmp_path) == []


class TestPlaces:
    def test_a_plain_file_is_one_that_we_read(self, tmp_path):
        path = export_policy(plain(), tmp_path / "p.npz")
        np.testing.assert_array_equal(recoup.load_policy(path).theta, plain().theta)

    @pytest.mark.parametrize("name", ["p", "p.db", "p.npz.txt", ".npz"])
    def test_the_ending_must_fit(self, name, tmp_path):
        with pytest.raises(InputError, match=r"must end in \.npz, \.onnx or \.pt"):
            export_policy(plain(), tmp_path / name, force=True)
        assert os.listdir(tmp_path) == []

    def test_nothing_is_written_over(self, tmp_path):
        mine = tmp_path / "mine.npz"
        mine.write_text("my notes")
        (tmp_path / "link.npz").symlink_to(tmp_path / "nowhere.npz")
        (tmp_path / "folder.npz").mkdir()
        for name, words in [
            ("mine.npz", "exists already: name another, or write over it with --force"),
            ("link.npz", "is a link that leads nowhere"),
            ("folder.npz", "is a directory"),
            ("not/there.npz", "does not exist: make it"),
        ]:
            with pytest.raises(InputError, match=words):
                export_policy(plain(), tmp_path / name)
        assert mine.read_text() == "my notes"
        assert sorted(os.listdir(tmp_path)) == ["folder.npz", "link.npz", "mine.npz"]

    @pytest.mark.parametrize("name", ["p.npz", "p.onnx"])
    def test_one_of_ours_is_not_either_and_nothing_false_is_said_of_it(self, name, tmp_path):
        if name.endswith("onnx"):
            pytest.importorskip("onnx")
        path = export_policy(plain(), tmp_path / name)
        before = path.read_bytes()
        with pytest.raises(InputError, match=f"{EXISTS}: name another, or write over") as no:
            export_policy(plain(), path)
        assert "recoup has made" not in str(no.value)
        assert path.read_bytes() == before
        export_policy(plain(), path, force=True)

    def test_by_force_the_name_is_taken_and_what_shared_it_stays(self, tmp_path):
        notes, study = tmp_path / "notes.txt", tmp_path / "study.db"
        notes.write_text("all my results")
        recoup.Study.open(study, dim=2).close()
        (tmp_path / "p.npz").hardlink_to(notes)
        (tmp_path / "q.npz").symlink_to(study)
        assert recoup.load_policy(export_policy(plain(), tmp_path / "p.npz", force=True))
        assert notes.read_text() == "all my results"
        with pytest.raises(InputError, match="is a study, which nothing is written over"):
            export_policy(plain(), tmp_path / "q.npz", force=True)

    @pytest.mark.parametrize(
        ("ending", "package", "words"),
        [(".onnx", "onnx", r"'recoup\[onnx\]'"), (".pt", "torch", "`pip install torch`")],
    )
    def test_a_package_that_is_missing_is_named(
        self, ending, package, words, tmp_path, monkeypatch
    ):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(InputError, match=words):
            export_policy(plain(), tmp_path / f"p{ending}")
        assert os.listdir(tmp_path) == []


def test_two_parts_of_one_name_are_refused():
    space = spaces.Dict({"a.b": BOX, "a": spaces.Dict(b=BOX)})
    with pytest.raises(InputError, match=r"two parts .* same name: a\.b, a\.b"):
        leaves(space)
