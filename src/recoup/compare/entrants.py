"""The methods that take part: ours by their rows, other libraries' by adapters."""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from recoup.checks import InputError, check_count, check_positive, nearest
from recoup.compare.code import own_code
from recoup.core.movers import is_mover
from recoup.core.types import Array, Given, Plain, Pytree, Settings
from recoup.engine.methods import (
    METHODS,
    Method,
    default_batch,
    known_method,
    method_row,
    settings_of,
)
from recoup.engine.parts import GIVEN
from recoup.runs.problem import batch_for
from recoup.tasks.engines.attempt import Raised, theirs


class PureMethod(NamedTuple):
    """A method as pure functions of one run, so that JAX can make many runs side by side."""

    batch: int  # N
    init: Callable[[Array, Array, Array], Pytree]  # key, mean [D], std [D] -> state
    ask: Callable[[Array, Pytree], tuple[Array, Pytree]]  # key, state -> theta [N, D], state
    tell: Callable[[Array, Pytree, Array, Array], Pytree]  # key, state, theta, returns [N] -> state
    mean: Callable[[Pytree], Array]  # state -> the policy to deploy [D]
    draw: Callable[[Pytree, Array], Array]  # state, standard normal noise [n, D] -> theta [n, D]


class Peer(Protocol):
    """One run of a method on the host. We maximise: larger returns are better.

    One that has `failures = True` is told NaN for an episode that failed.
    """

    batch: int  # N

    def ask(self) -> np.ndarray:
        """Parameters `[N, D]` to roll out; others where the last ones were not told."""

    def tell(self, theta: np.ndarray, returns: np.ndarray) -> None:
        """What they returned `[N]`, all of it finite."""

    def mean(self) -> np.ndarray:
        """The policy to deploy `[D]`."""

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What it would try now `[n, D]`, of standard normal noise `[n, D]`; none where `[0, D]`.

        A method without a distribution gives what it asked for last.
        """


class PeerRow(NamedTuple):
    """A method of another library."""

    name: str
    summary: str
    package: str  # that it needs; none for one of the user's
    home: str  # module:function that makes it; none for one that needs bounds
    traced: bool  # whether that gives a `Traced` for a number of parameters, or a `Peer` of a start
    settings: tuple[str, ...] | None  # None: whatever it takes
    boxed: str = ""  # module:function that makes a `Peer` of the unit box; none: it has no bounds
    deploys: str = "the mean of its distribution"


_HOME = "recoup.compare.peers"
_POPULATION = ("popsize", "sigma")
_GRADIENT = (*_POPULATION, "lr")
_SURROGATE = "CMA-ES with pycma's linear-quadratic surrogate"
_SEEN, _SAID = "the best trial seen", "what it recommends"
_MODEL = "the trial with the highest posterior mean of a Gaussian process"
WHOLE = {"popsize": 2, "startup": 1, "budget": 1}  # settings that are whole numbers, and the least
BOXED = {  # peers that search the unit box of bounded tasks: what makes them, what they deploy
    "cma-es": ("box_evolution:cma_es",),
    "cma-es-noise": ("box_evolution:noisy_cma_es",),
    "lra-cma-es": ("box_evolution:lra_cma_es",),
    "spsa": ("spsa:spsa", "its iterate"),
    "optuna-tpe": ("box_optuna:tpe", _SEEN),
    "optuna-gp": ("box_optuna:gp", _MODEL),
    "botorch-qlognei": ("box_botorch:qlognei", _MODEL),
    "smac": ("box_smac:smac", "its incumbent"),
    "nevergrad-tbpsa": ("box_nevergrad:tbpsa", _SAID),
    "nevergrad-ngopt": ("box_nevergrad:ngopt", _SAID),
    "turbo": ("turbo:turbo", _MODEL),
    "gibo": ("gibo:gibo", "its iterate"),
    "mpd": ("mpd:mpd", "its iterate"),
}


def _peer(name: str, summary: str, package: str, home: str, settings: tuple[str, ...]) -> PeerRow:
    boxed, *deploys = BOXED.get(name, ("",))
    there = f"{_HOME}.{home}" if home else ""
    inside = f"{_HOME}.{boxed}" if boxed else ""
    return PeerRow(name, summary, package, there, "evosax" in home, settings, inside, *deploys)


PEERS = {
    row[0]: _peer(*row)
    for row in (
        ("cma-es", "CMA-ES of pycma", "cma", "pycma:cma_es", _POPULATION),
        ("cma-es-noise", "CMA-ES of pycma with its noise handler", "cma", "", _POPULATION),
        ("lra-cma-es", "LRA-CMA-ES of cmaes", "cmaes", "", _POPULATION),
        ("lq-cma-es", _SURROGATE, "cma", "pycma:lq_cma_es", _POPULATION),
        ("snes", "SNES of evosax", "evosax", "evosax:snes", _POPULATION),
        ("evosax-pgpe", "PGPE of evosax", "evosax", "evosax:pgpe", _GRADIENT),
        ("evosax-cma-es", "CMA-ES of evosax", "evosax", "evosax:cma_es", _POPULATION),
        ("evosax-open-es", "OpenAI-ES of evosax", "evosax", "evosax:open_es", _GRADIENT),
        ("optuna-tpe", "Optuna's TPE", "optuna", "optuna:tpe", ("startup", "width")),
        ("optuna-cma-es", "Optuna's CMA-ES", "cmaes", "optuna:cma_es", (*_POPULATION, "width")),
        ("optuna-gp", "Optuna's Gaussian process", "torch", "", ("startup",)),
        ("evotorch-pgpe", "PGPE of EvoTorch", "evotorch", "evotorch:pgpe", _GRADIENT),
        ("spsa", "SPSA with Spall's gains", "numpy", "", ("sigma", "lr")),
        ("botorch-qlognei", "qLogNEI of BoTorch", "botorch", "", ("startup",)),
        ("smac", "SMAC3 on a Gaussian process", "smac", "", ("budget",)),
        ("nevergrad-tbpsa", "TBPSA of nevergrad", "nevergrad", "", ("budget",)),
        ("nevergrad-ngopt", "NGOpt of nevergrad", "nevergrad", "", ("budget",)),
        ("turbo", "TuRBO-1 on a Gaussian process of ours", "numpy", "", ()),
        ("gibo", "GIBO on a Gaussian process of ours", "numpy", "", ()),
        ("mpd", "most probable ascent (MPD) on the same", "numpy", "", ()),
    )
}
_BO = "'recoup[bench-bo]'"
EXTRAS = {"evotorch": "evotorch", **dict.fromkeys(("torch", "botorch", "smac", "nevergrad"), _BO)}
GRID = {  # settings of peers to choose from on tuning seeds; a method alone is its default
    "cma-es": ("cma-es", "cma-es:popsize=half", "cma-es:popsize=10"),
    "snes": ("snes", "snes:popsize=half", "snes:popsize=10"),
    "evosax-pgpe": ("evosax-pgpe", "evosax-pgpe:lr=0.1", "evosax-pgpe:lr=0.3"),
    "evosax-open-es": ("evosax-open-es", "evosax-open-es:lr=1", "evosax-open-es:lr=3"),
    "optuna-tpe": ("optuna-tpe", "optuna-tpe:width=3"),
}


class Entrant(NamedTuple):
    """A method with its settings."""

    label: str  # as it is written and shown
    name: str
    settings: Settings  # those that were given
    code: str = ""  # a digest of the user's, where it is the user's

    @property
    def method(self) -> Any:
        """One of ours by its name; what the user's name stands for: a function, or a mover."""
        return made_by(self.name) if ":" in self.name else self.name

    @property
    def peer(self) -> PeerRow | None:
        """Its row, where it is another library's or a `Peer` of the user's."""
        if ":" in self.name and not is_mover(self.method):
            return PeerRow(self.name, "", "", self.name, traced=False, settings=None)
        return PEERS.get(self.name)


def entrant_of(text: str) -> Entrant:
    """A method written `name` or `name:key=value,key=value`, once it can take part.

    Of a method of ours a part may be one of the user's: `weighting=module:object`. The name is that
    of a method, or `module:object` of one of the user's: a `recoup.Mover`, or a
    `function(mean, std, seed, settings)`, with a mean `[D]` and standard deviations `[D]`, that
    gives a `Peer`.
    """
    name, _, words = text.strip().partition(":")
    if words and "=" not in words.partition(":")[0]:
        function, _, words = words.partition(":")
        name = f"{name}:{function}"
    settings = _settings(text, words) if words else {}
    if ":" in name:
        made_by(name)
        made = Entrant(text.strip(), name, settings, own_code(name))
        if made.peer is None:
            made = _with_parts(made)
            check_settings(made)
        return made
    known = [*(row.name for row in METHODS.values() if row.space == "parameters"), *PEERS]
    if name in METHODS and name not in known:
        raise InputError(
            f"{name} explores in action space: methods that are compared search parameters."
        )
    if name not in known:
        raise InputError(
            f"method must be one of {', '.join(known)}; got {name!r}.{nearest(name, known)}"
        )
    made = _with_parts(Entrant(text.strip(), name, settings))
    check_settings(made)
    return made


def _with_parts(entrant: Entrant) -> Entrant:
    """The method with those parts of the user's that are named `module:object`, and their code."""
    if entrant.peer is not None:
        return entrant
    named = {
        key: text
        for key, text in entrant.settings.items()
        if key in GIVEN and isinstance(text, str) and ":" in text
    }
    parts = {key: made_by(text, "part") for key, text in named.items()}
    code = "".join(f"+{key}={text}{own_code(text)}" for key, text in named.items())
    return entrant._replace(settings={**entrant.settings, **parts}, code=entrant.code + code)


def _settings(text: str, words: str) -> Plain:
    found: Plain = {}
    for pair in words.split(","):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (key and equals and value):
            raise InputError(
                f"settings of a method are written method:key=value,key=value; got {text!r}."
            )
        key = key.replace("-", "_")
        if key in found:
            raise InputError(f"{key} is given twice in {text!r}.")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    """A number, true, false, none or a word."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def check_settings(entrant: Entrant) -> None:
    """Raises unless the settings are the method's own, and its package is installed."""
    row, settings = entrant.peer, dict(entrant.settings)
    if row is None:
        if "batch" in settings:
            check_count("batch", settings.pop("batch"))
        if unknown := [key for key in settings if key not in settings_of(entrant.method)]:
            known = ("batch", *settings_of(entrant.method))
            raise _unknown(entrant.name, unknown[0], known)
        method_row(entrant.method, **settings)
        return
    for key, value in settings.items():
        if row.settings is not None and key not in row.settings:
            raise _unknown(entrant.name, key, row.settings)
        _check_value(f"{key} of {row.name}", key, value)
    if find_spec(row.package) is None:
        extra = EXTRAS.get(row.package, "'recoup[bench]'")
        raise InputError(
            f"{row.name} needs {row.package}, which is not installed: pip install {extra}"
        )


def check_place(entrant: Entrant, task: str, bounded: bool) -> None:
    """Raises where a method of another library cannot search a task: for want of bounds, or not."""
    row = entrant.peer
    if row is None or not row.package:
        return
    if bounded and not row.boxed:
        raise InputError(
            f"{row.name} knows no bounds, and {task} has some: leave one of them out; methods with "
            f"bounds are {', '.join(BOXED)}."
        )
    if bounded and "width" in entrant.settings:
        raise InputError(f"{task} has bounds of its own: leave width of {row.name} out.")
    if not bounded and not row.home:
        raise InputError(
            f"{row.name} needs bounds, and {task} has none: leave one of them out, or take a task "
            "of the list bounded."
        )


def _check_value(what: str, key: str, value: Given) -> None:
    """Raises unless a setting of another library's method is such as it may be."""
    if key == "popsize" and isinstance(value, str):
        if value != "half":
            raise InputError(f"{what} must be a whole number or half, got {value!r}.")
    elif key in WHOLE:
        check_count(what, value, least=WHOLE[key])
    else:
        check_positive(what, value)


def _unknown(name: str, key: str, known: tuple[str, ...]) -> InputError:
    has = ", ".join(known)
    return InputError(
        f"{key!r} is not a setting of {name}; its settings are {has}.{nearest(key, known)}"
    )


def row_of(entrant: Entrant, defaults: Settings) -> Method:
    """The row of a method of ours; `defaults` are what the task asks of it."""
    given = {key: value for key, value in entrant.settings.items() if key != "batch"}
    return method_row(entrant.method, defaults, **given)


def batch_of(entrant: Entrant, dim: int, of_task: int | None) -> int:
    """Episodes between two moves of a method of ours, as `recoup train` chooses them.

    Given as a setting, or that which the method is made for, or the task's, or from the number of
    parameters.
    """
    if "batch" in entrant.settings:
        return check_count("batch", entrant.settings["batch"])
    batch = default_batch(known_method(entrant.method), dim) or of_task or batch_for(dim, None)
    return batch + batch % 2 if entrant.settings.get("mirrored") else batch


def population(settings: Settings, dim: int, even: bool = False) -> int:
    """The population of a peer: 4 + 3 ln D, half of it, or the number that was given."""
    usual = 4 + int(3 * np.log(dim))
    given = settings.get("popsize", usual)
    size = max(usual // 2, 2) if given == "half" else int(given)
    return size + size % 2 if even else size


def made_by(home: str, what: str = "method") -> Any:
    """What stands at `module:object`; looked for in the current directory too."""
    where, _, name = home.partition(":")
    here = str(Path.cwd())
    if not where.startswith(_HOME) and here not in sys.path:
        sys.path.insert(0, here)
    try:
        with theirs():
            return getattr(import_module(where), name)
    except Raised as wrong:
        raise InputError(f"the {what} {home} cannot be imported: {wrong.words}.") from None


@lru_cache
def version_of(package: str) -> str:
    """The version of a package that is installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"
