"""The picture of a study: results, parameters over time, slices, and what reuse is worth."""

import re
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from recoup.pictures.curves import ACCENT, INK, SECOND, legend_above

BAND = 0.15  # chance of a choice from which on its band has room for its name
KINDS = {  # of results: marker, size, filled, what they are
    "drawn": ("o", 16, True, "result"),
    "mirror": ("o", 16, True, None),
    "repeat": ("o", 16, True, None),
    "imported": ("o", 16, False, "from elsewhere"),
    "mean": ("D", 30, True, "of the mean policy"),
    "own": ("s", 26, False, "of one's own choice"),
}
GREY = "0.55"
LARGEST = 1e300  # of what is drawn
OUTLYING = 4.0  # interquartile ranges beyond which a result is drawn at the edge
VECTOR_DOTS = 2000  # results that are dots of a bitmap, also in a .pdf or .svg
TRUSTED = 0.7  # Pareto k-hat above which weights are marked


class Portrait(NamedTuple):
    """A study as arrays: n results in the order of telling, M moves, P parameters shown."""

    title: str
    returns: np.ndarray  # [n], not a number where a rollout failed
    kinds: np.ndarray  # [n] words of `KINDS`
    broken: np.ndarray  # [n] whether a result broke a limit
    at: np.ndarray  # [M + 1] results told when each move was made; 0 at the start
    estimate: np.ndarray  # [M] of the distribution before each move
    low: np.ndarray  # [M] of its 95 % interval, not a number where there is none
    high: np.ndarray  # [M]
    samples: np.ndarray  # [M] results that each move used
    ess: np.ndarray  # [M] and what they count for
    pareto_k: np.ndarray  # [M]
    parameters: list["Shown"]  # [P] over time
    sliced: list["Shown"]  # at most three, those that have moved most
    dim: int  # how many parameters there are
    unit: str = ""  # of returns
    noun: str = "return"  # what a result is called
    sign: float = 1.0  # -1 where smaller is better


class Shown(NamedTuple):
    """A parameter as it is drawn, in the user's units."""

    name: str
    log: bool
    bounds: tuple[float, float] | None
    mean: np.ndarray  # [M + 1]
    low: np.ndarray  # [M + 1] mean - 1 std, not a number where there is none
    high: np.ndarray  # [M + 1]
    values: np.ndarray  # [n] of the results; empty where they are not needed
    unit: str = ""
    words: tuple[str, ...] = ()  # of choices, where values are places among them
    chances: np.ndarray | None = None  # [M + 1, K] of them
    explains: str = ""  # of what returns vary by, where it is known
    whole: bool = False  # whether its values are whole numbers


def study_picture(portrait: Portrait) -> Figure:
    """Four panels: history, parameters over time, pairwise slices, health of reuse."""
    drawn = {name: getattr(portrait, name) for name in ("returns", "estimate", "low", "high")}
    drawn = {name: np.clip(values, -LARGEST, LARGEST) for name, values in drawn.items()}
    portrait = portrait._replace(**drawn)
    figure = Figure(figsize=(12.5, 8.6), layout="constrained")
    figure.suptitle(_plain(portrait.title), x=0.01, ha="left", color=INK, fontsize=12)
    halves: Any = figure.subfigures(1, 2, wspace=0.03, width_ratios=[1, 1.08])
    left, right = halves
    above, below = left.subfigures(2, 1, height_ratios=[1.55, 1])
    over, slices = right.subfigures(2, 1, height_ratios=[1.25, 1])
    _history(above.subplots(), portrait)
    _health(below.subplots(), portrait)
    _parameters(over, portrait)
    _slices(slices, portrait)
    return figure


# -- history --


def _history(axes: Axes, portrait: Portrait) -> None:
    """Every result, and the estimate of each move with its interval."""
    title = "Results, and the estimate of each move"
    _dress(axes, title)
    axes.set_ylabel(_with_unit(portrait.noun, portrait.unit), fontsize=9)
    n, returns = len(portrait.returns), portrait.returns
    _by_results(axes, n)
    if not n:
        _say(axes, "No result has been told yet.")
        return
    x, failed = np.arange(1, n + 1), ~np.isfinite(returns)
    limits = _limits(np.concatenate([returns, portrait.estimate, portrait.low, portrait.high]))
    inside = returns if limits is None else np.clip(returns, *limits)
    for kind, (marker, size, filled, label) in KINDS.items():
        chosen = (portrait.kinds == kind) & ~failed & (inside == returns)
        if chosen.any():
            face = ACCENT if filled else "none"
            dots = axes.scatter(x[chosen], returns[chosen], size, marker=marker, label=label)
            dots.set(facecolor=face, edgecolor=ACCENT, alpha=0.7, linewidth=0.9)
            dots.set_rasterized(n > VECTOR_DOTS)
    _far(axes, x, returns, inside)
    if (broken := portrait.broken & ~failed).any():  # the best of them are none to have
        rings = axes.scatter(x[broken], inside[broken], 60, label=f"{broken.sum()} broke a limit")
        rings.set(facecolor="none", edgecolor="#a5361a", linewidth=0.9)
    _estimates(axes, portrait)
    if limits is not None:
        room = 0.06 * (limits[1] - limits[0])
        axes.set_ylim(limits[0] - room, limits[1] + room)
    _failures(axes, x[failed], portrait.sign)
    legend_above(axes, title, 5.4, 10)


def _far(axes: Axes, x: np.ndarray, returns: np.ndarray, inside: np.ndarray) -> None:
    """Results that lie beyond the picture, as triangles at its edge."""
    for marker, beyond in (("v", returns < inside), ("^", returns > inside)):
        if beyond.any():
            label = f"{beyond.sum()} beyond, {'down' if marker == 'v' else 'up'} to "
            label += f"{returns[beyond].min() if marker == 'v' else returns[beyond].max():.3g}"
            axes.scatter(x[beyond], inside[beyond], 26, marker=marker, color=ACCENT, label=label)


def _estimates(axes: Axes, portrait: Portrait) -> None:
    if not len(portrait.estimate):
        return
    at, value = portrait.at[1:], portrait.estimate
    axes.fill_between(at, portrait.low, portrait.high, color=SECOND, alpha=0.2, lw=0)
    some = np.isfinite(portrait.low)
    if some.any() and len(at) <= 60:
        around = [value - portrait.low, portrait.high - value]
        around = [np.maximum(side[some], 0) for side in around]
        axes.errorbar(at[some], value[some], around, fmt="none", color=SECOND, capsize=2, lw=1)
    label = "estimate at each move" + (", 95 % interval" if some.any() else "")
    axes.plot(at, value, ".-", color=SECOND, lw=1.6, ms=5, label=label)


def _failures(axes: Axes, x: np.ndarray, sign: float) -> None:
    """Failed rollouts, which have no return, along the edge where the worst results lie."""
    if x.size:
        edge, height = axes.get_xaxis_transform(), 0.025 if sign > 0 else 0.975
        axes.plot(
            x, np.full(x.shape, height), "x", color="#a5361a", ms=6, transform=edge,
            label=f"{x.size} failed", clip_on=False,
        )  # fmt: skip
        if not len(axes.collections) and not len(axes.lines) > 1:
            axes.set_yticks([])


def _limits(values: np.ndarray) -> tuple[float, float] | None:
    """Between what the returns are drawn; None where there are none."""
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    low, high = values.min(), values.max()
    first, last = np.quantile(values, [0.25, 0.75])
    if last > first:
        low = max(low, first - OUTLYING * (last - first))
        high = min(high, last + OUTLYING * (last - first))
    if high <= low:
        low, high = low - 0.5 * max(abs(low), 1e-9), high + 0.5 * max(abs(high), 1e-9)
    return float(low), float(high)


# -- parameters over time --


def _parameters(figure: SubFigure, portrait: Portrait) -> None:
    """The mean policy over time with one standard deviation around it, a stripe a parameter."""
    shown, left = portrait.parameters, portrait.dim - len(portrait.parameters)
    stripes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    title = "Mean policy over time, ±1 std"
    if not np.isfinite(shown[0].low).any():
        title = "Mean policy over time"
    if any(parameter.words for parameter in shown):
        title += ", and chances of choices"
    if left:
        title += f" (the first {len(shown)} of {portrait.dim}; {left} are not shown)"
    figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=10)
    until = max(len(portrait.returns), 1)  # the newest distribution holds until now
    for axes, parameter in zip(stripes, shown, strict=True):
        _stripe(axes, np.append(portrait.at, until), parameter)
    _by_results(stripes[-1], len(portrait.returns))


def _stripe(axes: Axes, at: np.ndarray, parameter: Shown) -> None:
    _dress(axes)
    if parameter.chances is not None:
        _bands(axes, at, parameter, parameter.chances)
        return
    mean, low, high = (np.append(x, x[-1]) for x in parameter[3:6])
    axes.fill_between(at, low, high, color=ACCENT, alpha=0.18, lw=0)
    axes.plot(at, mean, color=ACCENT, lw=1.7)
    axes.plot(at[-1], mean[-1], "o", color=ACCENT, ms=4)
    _name(axes, parameter, f"{mean[-1]:.5g} {parameter.unit}".rstrip())
    every = np.concatenate([mean, low, high])
    _scale(axes, "y", parameter, every[np.isfinite(every)])
    axes.tick_params(labelsize=7.5)


def _name(axes: Axes, parameter: Shown, value: str) -> None:
    """Beside a stripe: which parameter, its newest mean, and how much it matters."""
    label = _plain(f"{_broken(parameter.name, 20)}\n{value}", 40)
    if parameter.explains:
        label += f"\nexplains {parameter.explains}"
    axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8.5)


def _bands(axes: Axes, at: np.ndarray, parameter: Shown, chances: np.ndarray) -> None:
    """How likely each choice was, one band above the other, the first at the bottom."""
    words = parameter.words
    ends = np.cumsum(np.vstack([chances, chances[-1:]]), axis=1)
    below = np.zeros(len(at))
    for k, word in enumerate(words):
        shade = 0.12 + 0.5 * k / len(words)
        axes.fill_between(at, below, ends[:, k], color=ACCENT, alpha=shade, lw=0)
        if chances[-1, k] > BAND:
            middle = (below[-1] + ends[-1, k]) / 2
            text = _plain(f"{word} {100 * chances[-1, k]:.0f} %", 40)
            axes.text(at[-1], middle, text, ha="right", va="center", fontsize=7.5, color=INK)
        below = ends[:, k]
    chosen = words[int(parameter.mean[-1])]  # of the mean policy: need not be the likeliest
    _name(axes, parameter, chosen)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 1], ["0", "1"])
    axes.tick_params(labelsize=7.5)


def _scale(axes: Axes, which: str, parameter: Shown, values: np.ndarray) -> None:
    """An axis in a parameter's units: its own scale, no wider than its bounds, few ticks."""
    if parameter.words:
        ends = (-0.5, len(parameter.words) - 0.5)
        words = [_plain(word, 12) for word in parameter.words]
        getattr(axes, f"set_{which}ticks")(range(len(words)), words)
        getattr(axes, f"set_{which}lim")(*ends)
        return
    place, back = (np.log, np.exp) if parameter.log else (np.positive, np.positive)
    low, high = float(place(values.min())), float(place(values.max()))
    room = 0.08 * (high - low) or 0.1 * max(abs(low), 0.1)
    low, high = low - room, high + room
    getattr(axes, f"set_{which}scale")("log" if parameter.log else "linear")
    axis = getattr(axes, f"{which}axis")
    if parameter.log:
        ticks = _log_ticks(float(back(low)), float(back(high)))
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    else:
        axis.set_major_locator(MaxNLocator(3, integer=parameter.whole))
    getattr(axes, f"set_{which}lim")(float(back(low)), float(back(high)))
    for bound in parameter.bounds or ():
        line = axes.axhline if which == "y" else axes.axvline
        if back(low) <= bound <= back(high):
            line(bound, color=GREY, lw=0.9, ls=":")


def _log_ticks(low: float, high: float) -> np.ndarray:
    """At most four round numbers on a logarithmic axis."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5), range(1, 10)):
        ticks = np.outer(decades, steps).ravel()
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) >= 2:
            return ticks[:: -(-len(ticks) // 4)]
    return np.unique([float(f"{value:.3g}") for value in np.geomspace(low, high, 4)[1:-1]])


# -- slices --


def _slices(figure: SubFigure, portrait: Portrait) -> None:
    """Results over pairs of the parameters that have moved most, coloured by their return."""
    shown = portrait.sliced
    pairs = [(a, b) for i, a in enumerate(shown) for b in shown[i + 1 :]]
    cells = figure.subplots(1, max(len(pairs), 1), squeeze=False)[0]
    title = f"Results by {portrait.noun}, and the newest mean"
    if portrait.dim > len(shown) > 1:
        title += f" (the {len(shown)} parameters of {portrait.dim} that moved most)"
    figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=10)
    if not pairs:
        _single(cells[0], shown[0], portrait)
        return
    drawn = [_pair(axes, *pair, portrait) for axes, pair in zip(cells, pairs, strict=True)]
    if drawn[0] is not None:
        bar = figure.colorbar(drawn[0], ax=list(cells), shrink=0.9, aspect=28)
        bar.set_label(_with_unit(portrait.noun, portrait.unit), fontsize=9)
        bar.ax.tick_params(labelsize=7.5)


def _pair(axes: Axes, a: Shown, b: Shown, portrait: Portrait) -> Any:
    """One slice; what its colours mean."""
    _dress(axes)
    axes.set_xlabel(_with_unit(_plain(_broken(a.name, 20), 40), a.unit), fontsize=8.5)
    name = _with_unit(_plain(_broken(b.name, 24), 40), b.unit)
    axes.set_ylabel(name, fontsize=8.5, labelpad=2)
    axes.tick_params(labelsize=7)
    returns, ok = portrait.returns, np.isfinite(portrait.returns)
    axes.plot(a.values[~ok], b.values[~ok], "x", color=GREY, ms=5)
    drawn = None
    if ok.any():
        better = portrait.sign * returns[ok]
        order = np.flatnonzero(ok)[np.argsort(better, kind="stable")]  # the best on top
        low, high = sorted(portrait.sign * np.quantile(better, [0.05, 1]))
        colours = "viridis" if portrait.sign > 0 else "viridis_r"  # the best is bright
        low, high = (low, high) if high > low else (low - 0.5, low + 0.5)
        drawn = axes.scatter(
            a.values[order], b.values[order], 18, returns[order], cmap=colours,
            vmin=low, vmax=high, lw=0, alpha=0.9, rasterized=bool(ok.sum() > VECTOR_DOTS),
        )  # fmt: skip
    _mean_mark(axes, a.mean[-1], b.mean[-1])
    for which, one in (("x", a), ("y", b)):
        _scale(axes, which, one, np.append(one.values, one.mean[-1]))
    return drawn


def _single(axes: Axes, parameter: Shown, portrait: Portrait) -> None:
    """A single parameter, and the returns over it."""
    _dress(axes)
    ok = np.isfinite(portrait.returns)
    values, returns = parameter.values[ok], portrait.returns[ok]
    inside = np.clip(returns, *(_limits(returns) or (0, 0)))
    axes.scatter(values, inside, 18, color=ACCENT, alpha=0.7, lw=0)
    _far(axes, values, returns, inside)
    axes.axvline(parameter.mean[-1], color=SECOND, lw=1.4, label="newest mean")
    axes.set_xlabel(_with_unit(_plain(parameter.name, 40), parameter.unit), fontsize=9)
    axes.set_ylabel(_with_unit(portrait.noun, portrait.unit), fontsize=9)
    _scale(axes, "x", parameter, np.append(parameter.values, parameter.mean[-1]))
    legend_above(axes, "", 5.4)


def _mean_mark(axes: Axes, x: float, y: float) -> None:
    axes.plot(x, y, "*", color=SECOND, ms=14, markeredgecolor="white", markeredgewidth=1, zorder=4)


# -- health of reuse --


def _health(axes: Axes, portrait: Portrait) -> None:
    """How many results each move used, and how many fresh ones they were worth."""
    title = "Health of reuse: what each move was made of"
    _dress(axes, title)
    _by_results(axes, len(portrait.returns))
    if not len(portrait.ess):
        _say(axes, "The distribution has not moved yet.")
        return
    at = portrait.at[1:]
    axes.plot(at, portrait.samples, "o-", color=GREY, lw=1.2, ms=3, label="results used")
    label = "effective sample size"
    axes.plot(at, portrait.ess, "o-", color=ACCENT, lw=1.6, ms=3.5, label=label)
    poor = portrait.pareto_k > TRUSTED
    if poor.any():
        label = f"Pareto k-hat above {TRUSTED}: a few weights decide"
        axes.plot(at[poor], portrait.ess[poor], "o", color=SECOND, ms=6.5, mfc="none", label=label)
    axes.set_ylim(0, None)
    legend_above(axes, title, 5.4, 10)


# -- small parts --


def _dress(axes: Axes, title: str | None = None) -> None:
    if title is not None:
        axes.set_title(title, loc="left", color=INK, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.tick_params(labelsize=8.5)


def _by_results(axes: Axes, n: int) -> None:
    """An axis of results in the order of telling."""
    axes.set_xlabel("results told", fontsize=9)
    axes.set_xlim(-0.02 * max(n, 1), 1.03 * max(n, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _say(axes: Axes, words: str) -> None:
    axes.set_yticks([])
    axes.text(0.5, 0.5, words, ha="center", va="center", color=GREY, transform=axes.transAxes)


def _with_unit(label: str, unit: str) -> str:
    return f"{label} [{_plain(unit)}]" if unit else label


def _broken(name: str, width: int) -> str:
    """A name on lines of about so many letters, broken after underscores and spaces."""
    lines = [""]
    for part in re.findall(r"[^_ ]*[_ ]+|[^_ ]+", name):
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _plain(text: str, longest: int = 110) -> str:
    """A text in which nothing is taken for mathematics, each line cut where it is too long."""
    lines = (x if len(x) <= longest else f"{x[: longest - 1]}…" for x in text.split("\n"))
    return "\n".join(lines).replace("$", "\\$")
