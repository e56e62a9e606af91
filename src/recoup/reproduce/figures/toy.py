"""Figures 2, 3 and 5: how the methods move on the toy."""

import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Claim, Contrast, above, contrast
from recoup.reproduce.drawing import LOOKS, curve, legend, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures import gradients
from recoup.reproduce.jobs import Arrays, Job
from recoup.reproduce.learning import joined, learning_jobs
from recoup.reproduce.sizes import Size

SIX = ("pgpe", "pgpe-ob", "niw-pgpe", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob")
BESIDE = ("tiw-pgpe-ob", "mis-pgpe-ob")
WEIGHED = ("iw-pgpe", "iw-pgpe-ob")
WALKED = ("niw-pgpe", "iw-pgpe", "iw-pgpe-ob")
ITERATIONS, TESTS, CHUNK = 20, 100, 1_000
STARTS = (-1.6, -0.8, -0.1)
SETTINGS = ((10, 20), (1, 200))  # batch, iterations
NEAR = 0.9  # of the way from the start's expected return to the best: "the vicinity"


# -- Figure 5: expected returns --


def return_jobs(size: Size, methods: tuple[str, ...] = SIX + BESIDE) -> list[Job]:
    """Learning curves of the toy, tested after every iteration."""
    every = range(ITERATIONS + 1)
    return learning_jobs("toy", methods, size.toy_runs, ITERATIONS, every, TESTS, chunk=CHUNK)


def collect_returns(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Expected returns `[R, L + 1]` by method."""
    return {method: joined(results, "toy", method).returns for method in SIX + BESIDE}


def return_claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 5."""
    best, end = "iw-pgpe-ob", {method: curves[:, -1] for method, curves in data.items()}
    ours, plain, niw = data[best], data["iw-pgpe"], data["niw-pgpe"]
    gap = ours - data["niw-pgpe-ob"]
    others = [method for method in SIX if method != best]
    return [
        Claim(
            "toy-returns.improves-fast",
            "S4.1.4",
            "IW-PGPE_OB improves the performance over iterations and converges very fast.",
            (
                contrast("gain of iw-pgpe-ob over 20 iterations", ours[:, -1] - ours[:, 0]),
                contrast(
                    "share of that gain within 10 iterations, minus 0.9 (times the gain)",
                    ours[:, 10] - ours[:, 0] - 0.9 * (ours[:, -1] - ours[:, 0]),
                ),
            ),
            f"Fast: nine tenths of the gain within the first half; {_share(ours, 10):.0%} are.",
        ),
        Claim(
            "toy-returns.niw-stays",
            "S4.1.4",
            "The performance of NIW-PGPE is not largely improved over iterations.",
            (
                contrast(
                    "half the gain of iw-pgpe-ob, minus the gain of niw-pgpe",
                    0.5 * (ours[:, -1] - ours[:, 0]) - (niw[:, -1] - niw[:, 0]),
                ),
            ),
            "Not largely: less than half of what iw-pgpe-ob gains.",
        ),
        Claim(
            "toy-returns.iw-above-niw",
            "S4.1.4",
            "IW-PGPE works better than NIW-PGPE.",
            tuple(above(end, "iw-pgpe", ["niw-pgpe"], "expected return after 20 iterations")),
        ),
        Claim(
            "toy-returns.iw-saturates",
            "S4.1.4",
            "... but the performance [of IW-PGPE] is saturated after 9 iterations.",
            (
                contrast(
                    "a fifth of the gain of iw-pgpe, minus its gain after iteration 9",
                    0.2 * (plain[:, -1] - plain[:, 0]) - (plain[:, -1] - plain[:, 9]),
                ),
            ),
            "Saturated: less than a fifth of the gain comes after iteration 9; "
            f"{1 - _share(plain, 9):.0%} do.",
        ),
        Claim(
            "toy-returns.late-advantage",
            "S4.1.4",
            "IW-PGPE_OB does not outperform NIW-PGPE_OB that much at the first several iterations, "
            "[but is] more reliable in the latter iterations.",
            (
                contrast("iw-pgpe-ob minus niw-pgpe-ob after 20 iterations", gap[:, -1]),
                contrast("that gap after 20 iterations minus after 5", gap[:, -1] - gap[:, 5]),
            ),
        ),
        Claim(
            "toy-returns.above-pgpe-ob",
            "S4.1.4",
            "The plain PGPE_OB method works fairly well, but it is still not as good as "
            "IW-PGPE_OB.",
            (
                contrast(
                    "gain of pgpe-ob minus half the gain of iw-pgpe-ob",
                    data["pgpe-ob"][:, -1]
                    - data["pgpe-ob"][:, 0]
                    - 0.5 * (ours[:, -1] - ours[:, 0]),
                ),
                *above(end, best, ["pgpe-ob"], "expected return after 20 iterations"),
            ),
            "Fairly well: more than half of what iw-pgpe-ob gains.",
        ),
        Claim(
            "toy-returns.best",
            "S1, S4.1.4",
            "The proposed method can achieve significant performance improvement over alternative "
            "approaches in experiments with an artificial domain.",
            tuple(above(end, best, others, "expected return after 20 iterations")),
        ),
        Claim(
            "toy-returns.baseline-over-weights",
            "S5",
            "[The] baseline is possibly the primary factor in improving performance compared with "
            "the importance weighting techniques.",
            tuple(above(end, "niw-pgpe-ob", ["iw-pgpe"], "expected return after 20 iterations")),
            "A baseline without weights against weights without a baseline.",
        ),
    ]


def _share(curves: np.ndarray, iteration: int) -> float:
    """Share of the mean gain that has been made by an iteration."""
    mean = curves.mean(0)
    return float((mean[iteration] - mean[0]) / (mean[-1] - mean[0]))


def draw_returns(data: Arrays) -> Picture:
    """Expected return over iterations."""
    figure, axes = picture(width=7.6)
    for method, curves in data.items():
        curve(axes[0, 0], range(ITERATIONS + 1), curves, method)
    axes[0, 0].set(xlabel="iteration", ylabel="expected return", xticks=range(0, 21, 5))
    legend(figure, axes[0, 0], sorted(data, key=lambda m: -data[m][:, -1].mean()))
    return figure


# -- Figure 2: the largest weight --


def collect_weights(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Largest importance weights `[R, L]`, and effective sample sizes."""
    runs = {method: joined(results, "toy", method) for method in WEIGHED}
    return {
        **{method: run.max_weight for method, run in runs.items()},
        **{f"{method} ess": run.ess for method, run in runs.items()},
    }


def weight_claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 2."""
    steps = np.arange(ITERATIONS) - (ITERATIONS - 1) / 2
    slopes = {m: np.log(data[m]) @ steps / (steps @ steps) for m in WEIGHED}
    return [
        Claim(
            "toy-weights.grow",
            "S4.1.2",
            "The maximum value of importance weights tends to be larger over iterations.",
            tuple(contrast(f"slope of log max w of {m}, an iteration", slopes[m]) for m in WEIGHED),
        )
    ]


def draw_weights(data: Arrays) -> Picture:
    """Largest weight over iterations, a panel a method as in the paper; below, what it costs."""
    figure, axes = picture(2, 2, width=8, height=5.2)
    for column, method in enumerate(WEIGHED):
        above_, below = axes[:, column]
        x = np.arange(1, ITERATIONS + 1)
        curve(above_, x, data[method], method)
        curve(below, x, data[f"{method} ess"], method)
        below.plot(x, 10 * x, color="0.7", linewidth=1, label="samples")
        above_.set_title(method, loc="left", fontsize=10)
        above_.set_xticks(range(0, 21, 5))
        below.set(xlabel="iteration", xticks=range(0, 21, 5))
    axes[0, 0].set_ylabel("largest weight")
    axes[1, 0].set_ylabel("effective sample size")
    axes[1, 0].legend(frameon=False, fontsize=8)
    return figure


# -- Figure 3: paths of the hyper-parameters --


def path_jobs(size: Size) -> list[Job]:
    """Runs from the three starts, with ten samples an iteration and with one."""
    jobs = [gradients.surface_job(4_000)]
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
    data["start return"] = gradients.expected_return(surface, STARTS, np.ones(3))
    return data


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


def path_claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 3; a run index is one run from each of the three starts."""
    share = {
        key.removesuffix(" return"): _reached(data, key.removesuffix(" return")).mean(0)
        for key in data
        if "N=" in key and key.endswith(" return")
    }

    def most(key: str) -> Contrast:
        return contrast(f"share of runs of {key} near the maximum, minus 1/2", share[key] - 0.5)

    def few(key: str) -> Contrast:
        return contrast(f"1/2 minus the share of runs of {key} near the maximum", 0.5 - share[key])

    def not_all(key: str) -> Contrast:
        return contrast(f"0.95 minus the share of runs of {key}", 0.95 - share[key])

    gain = (data["iw-pgpe-ob N=10 return"] - data["iw-pgpe N=10 return"]).mean(0)
    near = f"Near: {NEAR:.0%} of the way from the start's expected return to the maximum."
    return [
        Claim(
            "toy-paths.niw-fails",
            "S4.1.3",
            "NIW-PGPE can not properly update the solutions [N = 10].",
            (few("niw-pgpe N=10"),),
            near,
        ),
        Claim(
            "toy-paths.iw-sometimes",
            "S4.1.3",
            "IW-PGPE can lead the solutions to an area with large returns sometimes, but can not "
            "always reach [it] after 20 iterations.",
            (
                contrast("share of runs of iw-pgpe N=10, minus 0.05", share["iw-pgpe N=10"] - 0.05),
                not_all("iw-pgpe N=10"),
            ),
            near,
        ),
        Claim(
            "toy-paths.iw-ob-arrives",
            "S4.1.3",
            "IW-PGPE_OB gives the reliable update directions and the three paths converge rapidly "
            "to the vicinity of the maximum point without detours.",
            (most("iw-pgpe-ob N=10"),),
            near,
        ),
        Claim(
            "toy-paths.baseline-helps",
            "S4.1.3",
            "The optimal constant baseline highly contributes to improving the convergence "
            "property of IW-PGPE.",
            (contrast("iw-pgpe-ob minus iw-pgpe, expected return at the end, N = 10", gain),),
        ),
        Claim(
            "toy-paths.niw-fails-n1",
            "S4.1.3",
            "NIW-PGPE can not properly update the solutions to the maximum point [N = 1].",
            (few("niw-pgpe N=1"),),
            near,
        ),
        Claim(
            "toy-paths.iw-not-always-n1",
            "S4.1.3",
            "The IW-PGPE solutions can not always reach an area with large returns after 200 "
            "iterations [N = 1].",
            (not_all("iw-pgpe N=1"),),
            near,
        ),
        Claim(
            "toy-paths.iw-ob-reliable-n1",
            "S4.1.3",
            "The proposed IW-PGPE_OB can still find fairly reliable update directions with only "
            "N = 1.",
            (most("iw-pgpe-ob N=1"),),
            near,
        ),
    ]


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


FIGURES = (
    Figure(
        "toy-weights",
        "Figure 2",
        "The largest importance weight",
        "Average largest importance weight over iterations on the toy, and below it the effective "
        "sample size of the reused samples; mean and standard error over runs.",
        jobs=lambda size: return_jobs(size, WEIGHED),
        collect=collect_weights,
        claims=weight_claims,
        draw=draw_weights,
    ),
    Figure(
        "toy-paths",
        "Figure 3",
        "Paths of the hyper-parameters",
        "Mean and standard deviation of the search distribution over iterations, three starts, on "
        "the expected return (darker is better); the star is its maximum. Three runs from each "
        "start are drawn, all are counted.",
        jobs=path_jobs,
        collect=collect_paths,
        claims=path_claims,
        draw=draw_paths,
    ),
    Figure(
        "toy-returns",
        "Figure 5",
        "Expected returns on the toy",
        "Expected return over iterations, 100 fresh episodes a test; mean and standard error over "
        "runs with common starts.",
        jobs=return_jobs,
        collect=collect_returns,
        claims=return_claims,
        draw=draw_returns,
    ),
)
