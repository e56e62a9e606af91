"""What the user names as a task, found: an environment, a function, an environment in JAX."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isclass, isroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recoup.checks import InputError, nearest, printable, shortly
from recoup.core.types import Given, Module, Plain, Settings
from recoup.tasks.engines.attempt import Raised, theirs
from recoup.tasks.registry import TASKS, environments, register_envs

if TYPE_CHECKING:
    from gymnasium import Env

ENVIRONMENT, FUNCTION, TRACED = "environment", "function", "traced"  # kinds of tasks
GROUP = "recoup.tasks"  # of entry points that name tasks


@dataclass(frozen=True)
class Found:
    """A task of the user's and how it is made."""

    name: str  # as it is shown, and stored
    kind: str
    make: Any  # makes an environment; or the function; or the environment in JAX
    safe: bool  # whether the name alone finds it again and runs no code that a file has chosen
    defaults: Settings = field(default_factory=dict)  # settings of `train`, unless said
    summary: str = ""


REGISTERED: dict[str, Found] = {}


def register_task(name: str, task: Given, *, summary: str = "", **defaults: Given) -> None:
    """Makes a task known by a name: for `recoup.train`, `recoup tasks`, `evaluate`, `render`.

    `name` is a word without a colon. `task` is what `recoup.train` takes: a function that makes an
    environment, a function of theta
    (then `dim` or `params` is among the defaults), an environment in JAX. `summary` is shown by
    `recoup tasks`. `defaults` are settings
    of `recoup.train` for it: `horizon`, `discount`, `batch`, `test_episodes`, `policy`, `dim`, ...
    To be known to the program, a package names it among its entry points, in the group
    `recoup.tasks`: `robot = "my_package:robot"`, where `robot` is such a function.

    Raises `InputError` where the name is that of another task.

    >>> def bowl(theta):
    ...     return -float((theta**2).sum())
    >>> recoup.register_task("bowl", bowl, summary="to the origin", dim=3)
    >>> recoup.train("bowl", episodes=20).mean.shape
    (3,)
    """
    if not isinstance(name, str) or not name or ":" in name or name.split() != [name]:
        raise InputError(f"the name of a task must be a word without a colon, got {shortly(name)}.")
    is_function = "dim" in defaults or "params" in defaults
    found = _given(task, is_function)
    _check_free(name, task)
    REGISTERED[name] = Found(name, found.kind, found.make, True, dict(defaults), summary)


def registered() -> dict[str, Found]:
    """Tasks that were registered, and those that installed packages name."""
    points = {
        name: Found(name, ENVIRONMENT, point, True, {}, f"of {point.value}")
        for name, point in _named_by_packages().items()
    }
    return {**points, **REGISTERED}


def _named_by_packages() -> Plain:
    """Entry points by name; one whose name is taken is left out, with a warning."""
    found: Plain = {}
    for point in entry_points(group=GROUP):
        first = found.setdefault(point.name, point)
        if point.name not in TASKS and first.value == point.value:
            continue
        taken = "one of recoup's own" if point.name in TASKS else f"that of {first.value}"
        warnings.warn(
            printable(
                f"the task {point.name!r} of {point.value} is left out: that name is {taken}."
            ),
            stacklevel=2,
        )
    return {name: point for name, point in found.items() if name not in TASKS}


def _check_free(name: str, task: Given) -> None:
    """Raises where a name stands for another task already; the same one may be registered again."""
    before = registered().get(name)
    if name in TASKS or name in environments():
        whose = "one of recoup's own" if name in TASKS else "one of Gymnasium's"
        raise InputError(f"the task {name!r} is {whose}: register yours by another name.")
    if before is not None and name_of(before.make) != name_of(task):
        other = before.summary or name_of(before.make)
        raise InputError(
            f"the task {name!r} was registered before ({other}): register this one by another name."
        )


def find(task: Given, is_function: bool, trusted: bool = True) -> Found:
    """The task that was named or given; a function if `is_function`, for it has parameters.

    A name that would import a module is refused unless it is `trusted`: the user's own words are,
    what a file says is not.
    """
    if not isinstance(task, str):
        return _given(task, is_function)
    known = registered()
    if task in known:
        return _of_package(known[task], is_function)
    if task in environments():
        return Found(task, ENVIRONMENT, partial(gym_env, task), safe=True)
    if ":" in task:
        if not trusted:
            raise InputError(
                f"this run's task is {task}, which is code of its own: name it again to run it, "
                f"with --task {task} (in Python task=...)."
            )
        return _imported(task, is_function)
    if not trusted:
        raise InputError(
            f"this run's task is {task}, which is not known here: give it again with task=... (on "
            "the command line --task module:name)."
        )
    raise InputError(unknown(task, [*TASKS, *known, *environments()]))


def unknown(task: str, known: list[str]) -> str:
    """What is said about a task that there is not."""
    names = {name.lower(): name for name in reversed(known)}
    match = get_close_matches(task.lower(), names, n=1, cutoff=0.6)
    hint = f" Did you mean {names[match[0]]!r}?" if match else ""
    return (
        "task must be one of ours (`recoup tasks`), a Gymnasium id such as Pendulum-v1, or "
        f"module:callable; got {task!r}.{hint}"
    )


def gym_env(name: str, horizon: int | None = None, **options: Given) -> "Env":
    """A registered environment; without Gymnasium's checks of every step, which cost time."""
    import gymnasium

    register_envs()
    limit = {} if horizon is None else {"max_episode_steps": horizon}
    try:
        return gymnasium.make(name, disable_env_checker=True, **limit, **options)
    except gymnasium.error.DependencyNotInstalled as missing:
        raise InputError(f"{name} needs a package that is not installed: {missing}") from None
    except TypeError as wrong:
        raise InputError(f"{name} cannot be made with these options: {wrong}.") from None


def _given(task: Given, is_function: bool) -> Found:
    """A task that is an object of Python."""
    import gymnasium

    name = name_of(task)
    if isinstance(task, gymnasium.Env):
        return Found(name, ENVIRONMENT, partial(_same, task), safe=False)
    if is_traced_env(task):
        return Found(name, TRACED, task, safe=False)
    if isinstance(task, tuple) and len(task) == 2 and is_traced_env(task[0]):  # of `gymnax.make`
        return Found(name_of(task[0]), TRACED, task, safe=False)
    if not callable(task):
        raise InputError(
            "a task is a name, an environment, a function that makes one, or a function of theta; "
            f"got {shortly(task)}."
        )
    return Found(name, FUNCTION if is_function else ENVIRONMENT, task, safe=False)


def is_traced_env(task: Given) -> bool:
    """Whether an object is an environment in JAX: `reset` and `step`, and not Gymnasium's."""
    import gymnasium

    if isclass(task) or isinstance(task, gymnasium.Env):
        return False
    return hasattr(task, "reset") and hasattr(task, "step")


def _same(env: "Env", **options: Given) -> "Env":
    if any(value is not None for value in options.values()):
        raise InputError("an environment that is made already takes no options: give its function.")
    return env


def name_of(task: Given) -> str:
    """How an object of Python is named: as it can be imported, where it can be."""
    qualified = getattr(task, "__qualname__", None) or type(task).__qualname__
    module = getattr(task, "__module__", None) or type(task).__module__
    plain = qualified.replace(".<locals>", "").replace("<lambda>", "lambda")
    return f"{module}:{qualified}" if qualified.isidentifier() and module != "__main__" else plain


def _of_package(found: Found, is_function: bool) -> Found:
    """A registered task; one that a package names is imported now."""
    if not hasattr(found.make, "load"):
        return found
    try:
        with theirs():
            made = found.make.load()
    except Raised as wrong:
        raise InputError(f"the task {found.name} cannot be imported: {wrong.words}.") from None
    inner = _given(made, is_function)
    return Found(found.name, inner.kind, inner.make, True, found.defaults, found.summary)


def _imported(task: str, is_function: bool) -> Found:
    """The task that `module:name` names, looked for in the current directory too."""
    module, name = _module_of("task", task)
    if not hasattr(module, name) and name in environments():  # importing it has registered it
        return Found(task, ENVIRONMENT, partial(gym_env, task), safe=False)
    inner = _given(_part(module, name), is_function)
    return Found(task, inner.kind, inner.make, safe=False)


def imported_policy(text: str) -> Any:
    """The policy or network that `module:name` names; what a class or a function makes."""
    found = _part(*_module_of("policy", text))
    if not (isclass(found) or isroutine(found)):
        return found
    try:
        with theirs():
            return found()
    except Raised as wrong:
        raise InputError(f"{text} makes no policy: {wrong.words}.") from None


def _module_of(what: str, text: str) -> tuple[Any, str]:
    """The module of `module:name`, imported, from the current directory too; and the name."""
    where, _, name = text.partition(":")
    if not all(part.isidentifier() for part in where.split(".")) or not name:
        raise InputError(f"the {what} {text!r} must be written module:name.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        with theirs():
            return import_module(where), name
    except Raised as wrong:
        raise InputError(f"the {what} {text} cannot be imported: {wrong.words}.") from None


def _part(module: Module, name: str) -> Any:
    if not hasattr(module, name):
        raise InputError(f"{module.__name__} has no {name!r}.{nearest(name, vars(module))}")
    return getattr(module, name)


def envs_of(found: Found, horizon: int | None, options: Settings) -> Callable[..., Any]:
    """A function that makes the environment; `render_mode=` may be given to it."""
    fixed = dict(options)
    if isinstance(found.make, partial) and found.make.func is gym_env and horizon is not None:
        fixed["horizon"] = horizon
    return partial(found.make, **fixed)
