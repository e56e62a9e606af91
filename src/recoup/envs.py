"""Recoup's tasks are Gymnasium environments wherever Gymnasium and Recoup were both imported.

Gymnasium has had no entry points for environments since 1.0. It takes a while to import, and few
users of Recoup need it: so `import recoup` leaves that to them, and registers nothing before.
"""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def offer() -> None:
    """Registers the environments: now, where Gymnasium is there, or else once it is imported."""
    if "gymnasium" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _Waiting())


class _Waiting:
    """Waits for the import of Gymnasium, once, and leaves all others alone."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """How Gymnasium is found by others, with something to do after it."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        found = find_spec(name)
        if found is not None and found.loader is not None:
            run = found.loader.exec_module

            def then(module: ModuleType) -> None:
                run(module)
                _register()

            found.loader.exec_module = then  # type: ignore[method-assign]
        return found


def _register() -> None:
    from recoup.tasks.registry import register_envs

    register_envs()
