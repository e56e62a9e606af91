"""A comparison: fair, kept as it goes, and gone on with."""

import json

import jax
import numpy as np
import pytest

from recoup.checks import InputError
from recoup.compare import arenas, work
from recoup.compare.arenas import Asking, arena_of, expanded, start_of
from recoup.compare.comparison import Order, checkpoints_of, compare, left_of, plan_of
from recoup.compare.durations import STARTING, in_words, seconds
from recoup.compare.entrants import entrant_of
from recoup.compare.fields import field_of
from recoup.compare.players import StudyPlayer
from recoup.compare.run_results import CHECKSUM, FOLDER, CurveFiles, key_of, sealed
from recoup.compare.side_by_side import RunCurve, learn, on_host
from recoup.compare.summary import summary, versions_in
from recoup.engine.methods import METHODS, method_row, sized
from recoup.engine.search import search
from recoup.tasks.suite import LISTS, TEST_SEED, TUNING_SEED

ORDER = Order(["toy"], ["pgpe", "snes"], runs=2, episodes=20, checkpoints=[10, 20])


@pytest.fixture
def counted(monkeypatch):
    """The chunks that are computed."""
    done, compute = [], work.compute

    def counting(chunk, results, show):
        done.append((chunk.task, chunk.method, chunk.runs))
        compute(chunk, results, show)

    monkeypatch.setattr(work, "compute", counting)
    return done


@pytest.mark.slow
def test_only_what_is_missing_is_computed(tmp_path, counted):
    first = compare(ORDER, tmp_path, workers=1)
    assert counted == [("toy", "pgpe", (0, 1)), ("toy", "snes", (0, 1))]
    counted.clear()
    again = compare(ORDER, tmp_path, workers=1)
    assert counted == []
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.search, other.search)
    compare(ORDER._replace(runs=3), tmp_path, workers=1)
    assert counted == [("toy", "pgpe", (2,)), ("toy", "snes", (2,))]
    counted.clear()
    more = compare(ORDER._replace(methods=["pgpe", "snes", "pgpe:epsilon=0.2"]), tmp_path, 1)
    assert counted == [("toy", "pgpe:epsilon=0.2", (0, 1))]
    assert not np.allclose(more[0].search[:, 1:], more[2].search[:, 1:])


@pytest.mark.slow
def test_a_comparison_that_is_killed_goes_on(tmp_path, counted, monkeypatch):
    save, saved = CurveFiles.save, []

    def dies(self, key, curve):
        if len(saved) == 3:
            raise KeyboardInterrupt
        saved.append(key)
        save(self, key, curve)

    monkeypatch.setattr(CurveFiles, "save", dies)
    with pytest.raises(KeyboardInterrupt):
        compare(ORDER, tmp_path, workers=1)
    monkeypatch.setattr(CurveFiles, "save", save)
    counted.clear()
    compare(ORDER, tmp_path, workers=1)
    assert counted == [("toy", "snes", (1,))]


def test_a_damaged_result_is_computed_again(tmp_path, counted):
    compare(ORDER, tmp_path, workers=1)
    counted.clear()
    path = next((tmp_path / FOLDER).rglob("snes-1-*.json"))
    path.write_text(path.read_text()[:50])
    compare(ORDER, tmp_path, workers=1)
    assert counted == [("toy", "snes", (1,))]


@pytest.mark.parametrize(
    "wrong",
    [
        {"search": [1.0]},
        {"policy": [1.0, 2.0, 3.0, 4.0]},
        {"search": [1.0, "2.0", 3.0]},
        {"search": [1.0, float("inf"), 3.0]},
        {"policy": [1.0, True, 3.0]},
        {"search": "abc"},
        {"seconds": "soon"},
        {"batch": 0},
        {"batch": "4"},
        {"spent": [0, 8]},
        {"spent": [0, 8.5, 20]},
        {"failed": -1},
        {"seconds": 10**400},
        {"search": [1.0, -(10**400), 3.0]},
        {"failed_tests": None},
    ],
)
def test_a_result_of_another_shape_is_missing(tmp_path, wrong):
    order = ORDER._replace(methods=["snes"], runs=1)
    arena, entrant = arena_of("toy"), entrant_of("snes")
    key, results = key_of(arena, entrant, 0, 0, (10, 20)), CurveFiles(tmp_path)
    results.save(key, RunCurve(0, 4, [0, 8, 20], [1.0, np.nan, 3.0], [1.0, 2.0, 3.0], 0.1, 0, 0))
    assert left_of(plan_of(order), results) == []
    path = results.path(key)
    content = json.loads(path.read_text()) | wrong
    path.write_text(json.dumps(sealed({k: v for k, v in content.items() if k != CHECKSUM})))
    assert results.load(key) is None
    assert [chunk.runs for chunk in left_of(plan_of(order), results)] == [(0,)]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"seconds": 1', "[]", "null", ""])
def test_a_file_that_holds_no_result_is_missing(tmp_path, text):
    key, results = key_of(arena_of("toy"), entrant_of("snes"), 0, 0, (10, 20)), CurveFiles(tmp_path)
    path = results.path(key)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert results.load(key) is None


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_no_flipped_bit_of_a_result_is_taken(tmp_path, every):
    """The curve that is read is the one that was kept, or none is."""
    key, results = key_of(arena_of("toy"), entrant_of("snes"), 0, 0, (10, 20)), CurveFiles(tmp_path)
    results.save(key, RunCurve(0, 4, [0, 8, 20], [1.25, 0.5, 3.75], [1.0, 2.0, 3.0], 0.125, 0, 0))
    curve, path = results.load(key), results.path(key)
    content = path.read_bytes()
    assert curve.search == [1.25, 0.5, 3.75]
    taken = 0
    for bit in range(0, 8 * len(content), every):
        wrong = bytearray(content)
        wrong[bit // 8] ^= 1 << bit % 8
        path.write_bytes(wrong)
        found = results.load(key)
        assert found in (None, curve), f"bit {bit}: {bytes(wrong)}"
        taken += found is not None
    assert taken < len(content)  # a space may be another


def test_a_result_without_its_checksum_is_computed_again(tmp_path, counted):
    compare(ORDER, tmp_path, workers=1)
    counted.clear()
    path = next((tmp_path / FOLDER).rglob("snes-1-*.json"))
    content = json.loads(path.read_text())
    del content[CHECKSUM]
    path.write_text(json.dumps(content))
    compare(ORDER, tmp_path, workers=1)
    assert counted == [("toy", "snes", (1,))]


def test_a_task_takes_part_once_however_it_is_written():
    tasks = ["toy", "toy@1", "toy@0.1", "toy@0.1000001", "toy@1e-1"]
    plan = plan_of(ORDER._replace(tasks=tasks, methods=["pgpe", " pgpe"]))
    assert [arena.name for arena in plan.arenas] == ["toy", "toy@0.1", "toy@0.1000001"]
    assert [arena.std[0] for arena in plan.arenas] == [1.0, 0.1, 0.1000001]
    assert [chunk.task for chunk in plan.chunks] == ["toy", "toy@0.1", "toy@0.1000001"]
    plan = plan_of(ORDER._replace(tasks=["toy@0.1", "toy@0.3"], asking=Asking(factor=3)))
    assert [arena.name for arena in plan.arenas] == ["toy@0.3", "toy@0.9"]


def test_a_run_depends_on_everything_that_matters(tmp_path):
    plan = plan_of(ORDER)
    results = CurveFiles(tmp_path)
    results.prepare()
    compare(ORDER, tmp_path, workers=1)
    assert left_of(plan, results) == []
    for other in (
        ORDER._replace(seed=TUNING_SEED),
        ORDER._replace(checkpoints=[20]),
        ORDER._replace(asking=Asking(factor=0.25)),
        ORDER._replace(asking=Asking(tests=7)),
        ORDER._replace(asking=Asking(horizon=5)),
        ORDER._replace(methods=["pgpe:batch=5", "snes:popsize=half"]),
    ):
        assert len(left_of(plan_of(other), results)) == 2, other
    kept = json.loads(next((tmp_path / FOLDER).rglob("*.json")).read_text())["depends"]
    assert {"versions", "code", "settings", "std", "seed"} <= set(kept)


@pytest.mark.slow
def test_in_processes_it_is_the_same(tmp_path, monkeypatch):
    here = compare(ORDER, tmp_path / "here", workers=1)
    monkeypatch.setattr(work, "FEW_CHUNKS", 1)
    there = compare(ORDER, tmp_path / "there", workers=2)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(one.search, other.search, rtol=1e-9)


def test_all_methods_have_the_same_starts_and_tests():
    arena = arena_of("toy")
    found = [learn(arena, entrant_of(m), 3, [0, 1], [4]) for m in ("pgpe", "snes", "cma-es")]
    for kind in ("search", "policy"):
        first = np.array([[getattr(curve, kind)[0] for curve in curves] for curves in found])
        np.testing.assert_allclose(first, first[[0, 0, 0]], rtol=1e-6)
        assert first[0, 0] != pytest.approx(first[0, 1])
    drawn = np.random.default_rng([3, 1, arenas.START]).standard_normal(1)
    np.testing.assert_array_equal(start_of(arena, 3, 1), drawn)
    assert TEST_SEED != TUNING_SEED


@pytest.mark.parametrize("task", ["toy", "lqr-8", "CartPole-v1"])
def test_an_episode_is_the_same_in_whatever_batch_it_comes(task, x64):
    arena = arena_of(task)
    field = field_of(arena, 0, [2, 3])
    theta = np.random.default_rng(0).normal(size=(2, 6, arena.dim))
    whole = np.asarray(field.learn(0, theta))
    parts = [np.asarray(field.learn(i, theta[:, i : i + 2])) for i in (0, 2, 4)]
    np.testing.assert_allclose(whole, np.concatenate(parts, axis=1), rtol=1e-9)
    same = np.repeat(theta[:, :1], 6, axis=1)
    assert len(set(np.asarray(field.learn(0, same))[0])) > 1
    tests = [np.asarray(field.test(same, arenas.TESTS)) for _ in range(2)]
    np.testing.assert_array_equal(*tests)
    field.close()


def test_noisy_functions_are_tested_without_noise(x64):
    arena = arena_of("sphere-10@0.25")
    assert arena.policy_episodes == 1
    np.testing.assert_array_equal(arena.std, 0.125)
    field = field_of(arena, 0, [0])
    theta = np.full((1, 3, 10), 0.5)
    np.testing.assert_allclose(field.test(theta, arenas.TESTS), -2.5)
    assert np.std(np.asarray(field.learn(0, theta))) > 0


@pytest.mark.parametrize(
    "name", [row.name for row in METHODS.values() if row.space == "parameters"]
)
@pytest.mark.slow
def test_every_method_of_ours_takes_part(name):
    curves = learn(arena_of("toy"), entrant_of(f"{name}:batch=4"), 0, [0, 1], [3, 8])
    assert curves[0].spent == [0, 0, 8]
    assert curves[0].search[0] == curves[0].search[1] != curves[0].search[2]
    assert np.isfinite([curve.policy for curve in curves]).all()


@pytest.mark.parametrize(
    ("task", "method", "here"),
    [
        ("CartPole-v1", "recoup", True),
        ("CartPole-v1", "cem:batch=4", True),
        ("CartPole-v1", "cma-es", True),
        ("CartPole-v1", "iw-pgpe:baseline=split", True),
        ("CartPole-v1", "snes", False),
        ("toy", "recoup", False),
        ("toy", "cma-es", False),
    ],
)
def test_what_is_rolled_out_here_is_moved_here_without_a_compiler(task, method, here):
    assert on_host(arena_of(task), entrant_of(method)) is here


@pytest.mark.parametrize("name", ["recoup", "mis-pgpe-ob", "cem"])
def test_a_run_on_the_host_moves_as_a_search_does_that_is_told_the_same(name):
    """Whatever it would have drawn by itself; one of each batch fails."""
    row, start = method_row(name, failure=-9.0), np.array([0.3, -1.0, 2.0])
    with jax.enable_x64(True):
        how = {"method": sized(row, 3), "batch": 6, "dim": 3, "mean": start, "std": 0.7, "seed": 5}
        player = StudyPlayer(how, {})
        other = search(row, dim=3, batch=6, capacity=60)
        state = other.init(jax.random.key(0), start, 0.7)
        for i in range(5):
            theta = player.ask()
            returns = np.where(np.arange(6) == i, np.nan, -np.sum((theta - 1) ** 2, 1))
            player.tell(theta, returns)
            state, _ = other.tell(jax.random.key(i), state, theta, returns)
        scale = 0.7 * np.sqrt(3)
        np.testing.assert_allclose(player.mean(), state.mean, atol=1e-9 * scale)
        noise = np.random.default_rng(1).standard_normal((4, 3))
        np.testing.assert_allclose(player.draw(noise), state.rho.theta(noise), atol=1e-9 * scale)


def test_an_estimate_grows_with_the_work_and_shrinks_with_workers(tmp_path):
    plan = plan_of(ORDER._replace(tasks=["toy", "CartPole-v1"]))
    left = left_of(plan, CurveFiles(tmp_path))
    assert seconds(plan, left, 1) > seconds(plan, left[:2], 1) > 0
    more = [seconds(plan, left, workers) - STARTING for workers in (1, 2)]
    assert more[1] == pytest.approx(more[0] / 2)
    assert [in_words(x) for x in (3, 600, 9000)] == ["10 seconds", "10 minutes", "2.5 hours"]


def test_the_end_is_always_a_checkpoint():
    assert checkpoints_of(None, 400) == (50, 100, 200, 400)
    assert checkpoints_of(None, 3) == (1, 3)
    assert checkpoints_of([50, 20], 100) == (20, 50, 100)
    with pytest.raises(InputError, match="within the 100 episodes, got 200"):
        checkpoints_of([200], 100)


def test_lists_stand_for_their_tasks():
    assert expanded(["toy", "quick", "toy"])[:2] == ["toy", "mountain-car"]
    for name in LISTS["suite"]:
        if "reach-" not in name:
            assert arena_of(name).name == name


@pytest.mark.parametrize(
    ("tasks", "methods", "names"),
    [
        (["toy"], ["pgpe"], ["recoup", "jax", "numpy"]),
        (["toy"], ["pgpe", "cma-es"], ["recoup", "cma", "jax", "numpy"]),
        (["CartPole-v1"], ["pgpe"], ["recoup", "gymnasium", "numpy"]),
        (["math:fsum"], ["pgpe"], ["recoup", "numpy"]),
        (["hopper"], ["pgpe"], ["recoup", "gymnasium", "mujoco", "numpy"]),
    ],
)
def test_the_versions_are_those_of_what_took_part(tasks, methods, names):
    dim = Asking(dim=2) if tasks == ["math:fsum"] else Asking()
    plan = plan_of(ORDER._replace(tasks=tasks, methods=methods, asking=dim))
    found = versions_in(plan)
    assert list(found) == names
    assert found["numpy"] == np.__version__


def test_what_is_said_about_curves(tmp_path):
    said = summary(plan_of(ORDER), compare(ORDER, tmp_path, workers=1))
    json.dumps(said, allow_nan=False)
    (task,) = said["tasks"]
    pgpe, snes = task["methods"]
    assert "against" not in pgpe
    runs = np.array([[row["search"]["runs"][i] for i in range(2)] for row in (pgpe, snes)])
    gain = runs[1, :, -1] - runs[0, :, -1]
    assert snes["against"]["search"][-1]["mean"] == pytest.approx(gain.mean())
    assert task["target"] == pytest.approx(runs[0, :, -1].mean())
    assert (pgpe["batch"], snes["batch"]) == (10, 4)
