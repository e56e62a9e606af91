import compileall
import gc
import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Some ask Python to write no byte code: then every process compiles what it imports of ours anew,
# and pytest rewrites the assertions of every file in every worker. That of this checkout is kept.
ROOT = Path(__file__).parent.parent
WRITES_NOTHING = sys.dont_write_bytecode
if WRITES_NOTHING and "PYTEST_XDIST_WORKER" not in os.environ:
    for ours in ("src", "benchmarks"):
        compileall.compile_dir(ROOT / ours, quiet=2)
sys.dont_write_bytecode = False  # while tests are collected

# Compilation takes most of the suite's time; what was compiled once is kept, for all workers and
# the processes that they start. One that is writing, or was killed while it did, leaves a part of
# an entry: JAX warns (pyproject.toml lets it) and compiles anew.
CACHE = ROOT / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.03")
# Most of what is compiled here runs once: compile fast rather than well.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)
# Matrices are small here, and two workers with two threads each get in each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Pictures are as Matplotlib draws them, whatever the user has set, and the home may be read-only.
os.environ.setdefault("MPLCONFIGDIR", str(CACHE.with_name("matplotlib")))
# Files of tests lie in memory where there is room: a disk is waited for whenever a study commits.
MEMORY = Path("/dev/shm")
if (
    os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > 4 * 2**30
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC  # some tests write programs
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
# What is no terminal has no width: workers of xdist are told that of the one they were started in.
os.environ.pop("COLUMNS", None)
# An example may take as long as it takes, and is the same on every machine.
settings.register_profile(
    "here", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("here")
# The files that take longest, the longest first: what is left for the end is short, and the workers
# end together. The first two mostly wait, beside others that compute.
# (`--no-loadscope-reorder` keeps pytest-xdist from ordering by the number of tests.)
LONG = [
    "stories/test_stress.py",
    "tasks/engines/test_cluster.py",
    "stories/test_voice.py",
    "stories/test_lapack_order.py",
    "study/voice/test_recommend.py",
    "stories/test_passes.py",
    "reproduce/test_reproduce.py",
    "engine/test_search.py",
    "stories/test_own_movers.py",
    "core/rules/test_recoup_rule.py",
    "engine/test_methods.py",
    "engine/test_estimate.py",
    "stories/test_action_methods.py",
    "study/moves/test_uncompiled.py",
    "stories/test_report.py",
    "stories/test_writes.py",
    "stories/test_families_and_memory.py",
    "stories/test_own_runs.py",
    "study/voice/test_rehearsal.py",
    "study/care/test_amend.py",
    "study/exchange/test_change.py",
    "study/exchange/test_proposals.py",
    "docs/test_blocks.py",
    "docs/test_site_walk.py",
    "stories/test_tasks_by_methods.py",
    "compare/test_comparison.py",
    "study/space/test_goals.py",
    "stories/test_repeats.py",
    "core/rules/test_classics.py",
    "docs/test_readme.py",
    "tasks/engines/test_attempt.py",
    "study/space/test_choices.py",
    "cli/test_study_commands.py",
    "stories/test_adding.py",
    "stories/test_study_methods.py",
    "runs/test_train.py",
    "stories/test_one_voice.py",
    "core/rules/test_rugged.py",
    "stories/test_study_faults.py",
    "study/voice/test_predict.py",
    "core/test_intervals.py",
    "study/space/test_limits.py",
    "stories/test_study_archives.py",
    "stories/test_recoup_study.py",
    "store/test_place.py",
    "engine/test_parts.py",
    "tasks/reach/test_reach_task.py",
    "study/views/test_plot_data.py",
    "runs/test_kept.py",
    "stories/test_key_order.py",
    "study/views/test_snapshot.py",
    "runs/test_directory.py",
    "cli/test_compare.py",
]


def pytest_collection_modifyitems(items):
    home, last = Path(__file__).parent, len(LONG)
    place = {home / name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path, last))


def pytest_collection_finish():
    """What tests write and import leaves no byte code, if the user wants none.

    Tracing makes many objects and little garbage: look for it seldom, and not in what stays."""
    sys.dont_write_bytecode = WRITES_NOTHING
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


@pytest.fixture(scope="module", autouse=True)
def _forgotten():
    """What a file has compiled is dropped at its end: a process can hold only so many programs."""
    yield
    if "jax" in sys.modules:
        import jax

        jax.clear_caches()
    gc.collect()


@pytest.fixture
def x64():
    """float64 for one test, through the context that users have."""
    import jax

    with jax.enable_x64(True):
        yield


@pytest.fixture
def sketches():
    """For one test, pictures are composed and not rendered; see `helpers/sketches.py`."""
    from sketches import sketched

    with sketched():
        yield


@pytest.fixture(scope="module")
def few_rehearsals():
    """For one file, forecasts of four rehearsals: they hold together as those of many do."""
    from rehearsals import few

    with few():
        yield
