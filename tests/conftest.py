import os
import sys
from pathlib import Path

import pytest

# Compilation takes most of the suite's time; what was compiled once is kept, apart for each worker
# so that none reads what another is writing.
CACHE = Path(__file__).parent.parent / ".pytest_cache" / "jax"
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(CACHE / os.environ.get("PYTEST_XDIST_WORKER", "main"))
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.03")
# Most of what is compiled here runs once: compile fast rather than well.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)


@pytest.fixture(scope="module", autouse=True)
def _forgotten():
    """What a file has compiled is dropped at its end: a process can hold only so many programs."""
    yield
    if "jax" in sys.modules:
        import jax

        jax.clear_caches()


@pytest.fixture
def x64():
    """float64 for one test, through the context that users have."""
    import jax

    with jax.enable_x64(True):
        yield
