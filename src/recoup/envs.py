"""Recoup's tasks are Gymnasium environments wherever Gymnasium and Recoup were both imported.

Gymnasium has had no entry points for environments since 1.0. It takes a while to import, and few
users of Recoup need it: so `import recoup` leaves that to them, and registers nothing before.
"""

import sys
from collections.abc import Callable
from functools import partial
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
    """Waits until Gymnasium has been imported, and leaves all other imports alone."""

    asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """How others find Gymnasium, with something to do after it; it may never be imported."""
        if name != "gymnasium" or self.asking:
            return None
        self.asking = True
        try:
            found = find_spec(name)
        finally:
            self.asking = False
        if found is not None and found.loader is not None:
            found.loader.exec_module = partial(self.then, found.loader.exec_module)  # type: ignore[method-assign]
        return found

    def then(self, run: Callable[[ModuleType], None], module: ModuleType) -> None:
        """Imports Gymnasium; once that has come to its end, it is waited for no more."""
        run(module)
        sys.meta_path.remove(self)
        _register()


def _register() -> None:
    from recoup.tasks.registry import register_envs

    register_envs()
