"""Figure 3: where the methods move on the toy, in the plane of mean and standard deviation."""

import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Contrast, Said, contrast
from recoup.reproduce.drawing import LOOKS, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures import gradients
from recoup.reproduce.jobs import Arrays, FigureJob
from recoup.reproduce.learning_curves import joined, learning_jobs
from recoup.reproduce.sizes import Size

WALKED = ("niw-pgpe", "iw-pgpe", "iw-pgpe-ob")
STARTS = (-1.6, -0.8, -0.1)
SETTINGS = ((10, 20), (1, 200))  # batch, iterations
DETOURS = 10  # the batch whose paths are said to make none
CHUNK = 1_000
NEAR = 0.9  # of the way from the start's expected return to the best: "the vicinity"
DETOUR = 1.5  # as long as the straight line: a detour
VICINITY = f"Near: {NEAR:.0%} of the way from the start's expected return to the maximum."


def path_jobs(size: Size) -> list[FigureJob]:
    """Runs from the three starts, with ten samples an iteration and with one."""
    jobs = [gradients.surface_job()]
    for batch, iterations in SETTINGS:
        for start in STARTS:
            jobs += learning_jobs(
                "toy",
                (*WALKED, "mis-pgpe-ob"),
                size.paths,
                iterations,
                range(iterations + 1),
                0,
                chunk=CHUNK,
                mean=start,
                batch=batch,
            )
    return jobs


def collect_paths(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Paths of rho `[start, shown, L + 1, 2]` and the expected returns at their ends."""
    surface = results["toy/surface"]["mean"]
    data: Arrays = {"surface": surface, "best": np.array(_summit(surface))}
    for batch, _ in SETTINGS:
        for method in (*WALKED, "mis-pgpe-ob"):
            runs = [joined(results, "toy", method, mean=s, batch=batch) for s in STARTS]
            paths = np.stack([np.concatenate([r.mean, r.std], -1) for r in runs])
            ends = gradients.expected_return(surface, paths[:, :, -1, 0], paths[:, :, -1, 1])
            data[f"{method} N={batch}"] = paths[:, :5]
            data[f"{method} N={batch} return"] = ends
            if batch == DETOURS:
                data[f"{method} N={batch} detour"] = _detour(surface, data["best"][0], paths)
    data["start return"] = gradients.expected_return(surface, STARTS, np.ones(3))
    return data


def _detour(surface: np.ndarray, best: float, paths: np.ndarray) -> np.ndarray:
    """Length of each path `[start, R]` over the straight line, from its start to the vicinity.

    Of `paths [start, R, L + 1, 2]`; one that does not come near counts to its end.
    """
    by_move = np.moveaxis(paths, (2, 3), (0, 1))  # so that one at a time fits in memory
    returns = np.stack([gradients.expected_return(surface, *at) for at in by_move], -1)
    near = returns >= returns[..., :1] + NEAR * (best - returns[..., :1])
    last = np.where(near.any(-1), near.argmax(-1), paths.shape[2] - 1)[..., None]
    lengths = np.linalg.norm(np.diff(paths, axis=2), axis=-1).cumsum(-1)
    ends = np.take_along_axis(paths, last[..., None], 2)[:, :, 0]
    straight = np.linalg.norm(ends - paths[:, :, 0], axis=-1)
    length = np.take_along_axis(lengths, np.maximum(last - 1, 0), 2)[..., 0]
    return np.where(last[..., 0] > 0, length / np.maximum(straight, 1e-9), 1.0)


def _summit(surface: np.ndarray) -> tuple[float, float, float]:
    """The best expected return with tau at its floor or above, and where it is."""
    eta, tau = np.meshgrid(np.linspace(-2, 1, 301), np.linspace(0.05, 1.2, 116))
    values = gradients.expected_return(surface, eta, tau)
    i = np.unravel_index(values.argmax(), values.shape)
    return float(values[i]), float(eta[i]), float(tau[i])


def _reached(data: Arrays, key: str) -> np.ndarray:
    """Which runs `[start, R]` have come into the vicinity of the maximum."""
    start = data["start return"][:, None]
    return data[f"{key} return"] >= start + NEAR * (data["best"][0] - start)


def _share(data: Arrays, key: str) -> np.ndarray:
    """Of the three starts, from how many a run comes near the maximum `[R]`."""
    return _reached(data, key).mean(0)


def _most(data: Arrays, key: str) -> Contrast:
    what = f"share of runs of {key} near the maximum, minus 1/2"
    return contrast(what, _share(data, key) - 0.5)


def _few(data: Arrays, key: str) -> Contrast:
    what = f"1/2 minus the share of runs of {key} near the maximum"
    return contrast(what, 0.5 - _share(data, key))


def _some(data: Arrays, key: str) -> Contrast:
    return contrast(f"share of runs of {key}, minus 0.05", _share(data, key) - 0.05)


def _not_all(data: Arrays, key: str) -> Contrast:
    return contrast(f"0.95 minus the share of runs of {key}", 0.95 - _share(data, key))


def _straight(data: Arrays, key: str) -> Contrast:
    what = f"{DETOUR} minus the length of the path of {key} over the straight line"
    return contrast(what, DETOUR - data[f"{key} detour"].mean(0), most=DETOUR - 1)


def draw_paths(data: Arrays) -> Picture:
    """Paths on the contour of the expected return; rows N, columns methods."""
    methods = (*WALKED, "mis-pgpe-ob")
    figure, axes = picture(len(methods), len(SETTINGS), width=11, height=5.6)
    eta, tau = np.meshgrid(np.linspace(-2.2, 0.6, 141), np.linspace(0.05, 1.5, 80))
    level = gradients.expected_return(data["surface"], eta, tau)
    for row, (batch, iterations) in enumerate(SETTINGS):
        for column, method in enumerate(methods):
            ax, key = axes[row, column], f"{method} N={batch}"
            ax.grid(visible=False)
            ax.contourf(eta, tau, level, 14, cmap="Greys", alpha=0.55)
            for paths in data[key]:
                for shown, path in enumerate(paths[:3]):
                    colour = LOOKS[method].colour
                    ax.plot(*path.T, color=colour, linewidth=1.1, alpha=1 if shown == 0 else 0.45)
                ax.plot(*paths[0, 0], "o", color="white", markeredgecolor="black", markersize=5)
            ax.plot(*data["best"][1:], "*", color="#e6ac00", markeredgecolor="black", markersize=11)
            share = _reached(data, key).mean()
            title = f"{method}, N = {batch}\n{share:.0%} of runs come near"
            ax.set_title(title, loc="left", fontsize=9)
            ax.set(xlim=(-2.2, 0.6), ylim=(0.0, 1.5))
            if row == len(SETTINGS) - 1:
                ax.set_xlabel("mean η")
            if column == 0:
                ax.set_ylabel(f"std τ ({iterations} iterations)")
    return figure


SAID = (
    Said(
        "toy-paths.niw-fails",
        "NIW-PGPE can not properly update the solutions [N = 10], which means that the "
        "inconsistency can not be overcome by increasing the number of samples.",
        lambda data: (_few(data, "niw-pgpe N=10"),),
        VICINITY,
    ),
    Said(
        "toy-paths.iw-sometimes",
        "IW-PGPE can lead the solutions to an area with large returns sometimes, but can not "
        "always reach [it] after 20 iterations.",
        lambda data: (_some(data, "iw-pgpe N=10"), _not_all(data, "iw-pgpe N=10")),
        VICINITY,
    ),
    Said(
        "toy-paths.iw-ob-arrives",
        "IW-PGPE_OB gives the reliable update directions and the three paths converge rapidly "
        "to the vicinity of the maximum point without detours.",
        lambda data: (_most(data, "iw-pgpe-ob N=10"), _straight(data, "iw-pgpe-ob N=10")),
        lambda data: (
            f"{VICINITY} Rapidly: within the 20 iterations of the figure. Without detours: the "
            f"path to the vicinity is less than {DETOUR} times as long as the straight line; of "
            f"iw-pgpe-ob it is {data['iw-pgpe-ob N=10 detour'].mean():.2f} times, of iw-pgpe "
            f"{data['iw-pgpe N=10 detour'].mean():.2f} times."
        ),
    ),
    Said(
        "toy-paths.baseline-helps",
        "The optimal constant baseline highly contributes to improving the convergence "
        "property of IW-PGPE.",
        lambda data: {
            "iw-pgpe-ob minus iw-pgpe, expected return at the end, N = 10": (
                data["iw-pgpe-ob N=10 return"] - data["iw-pgpe N=10 return"]
            ).mean(0)
        },
    ),
    Said(
        "toy-paths.niw-fails-n1",
        "NIW-PGPE can not properly update the solutions to the maximum point [N = 1].",
        lambda data: (_few(data, "niw-pgpe N=1"),),
        VICINITY,
    ),
    Said(
        "toy-paths.iw-not-always-n1",
        "The IW-PGPE solutions can not always reach an area with large returns after 200 "
        "iterations [N = 1].",
        lambda data: (_not_all(data, "iw-pgpe N=1"),),
        VICINITY,
    ),
    Said(
        "toy-paths.iw-ob-reliable-n1",
        "The proposed IW-PGPE_OB can still find fairly reliable update directions with only N = 1.",
        lambda data: (_most(data, "iw-pgpe-ob N=1"),),
        VICINITY,
    ),
)

FIGURES = (
    Figure(
        "toy-paths",
        "Figure 3",
        "Paths of the hyper-parameters",
        "Mean and standard deviation of the search distribution over iterations, three starts, on "
        "the expected return (darker is better); the star is its maximum. Three runs from each "
        "start are drawn, all are counted.",
        jobs=path_jobs,
        collect=collect_paths,
        draw=draw_paths,
        said=SAID,
        section="S4.1.3",
    ),
)
