"""Figure 4: in which direction estimated gradients point."""

from functools import partial

import jax
import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Said
from recoup.reproduce.drawing import LOOKS, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures import gradients
from recoup.reproduce.figures.gradients import ESTIMATORS
from recoup.reproduce.jobs import Arrays, FigureJob, Tick
from recoup.reproduce.sizes import Size

POINT, SOURCE = (-0.8, 0.5), (-1.6, 1.0)  # where, and what drew the samples
FAN = 60  # degrees to either side
COMPARED = ("niw-pgpe", "iw-pgpe", "iw-pgpe-ob")


def direction_jobs(size: Size) -> list[FigureJob]:
    """Estimates from ten off-policy samples, and the true gradient."""
    settings = {"estimates": size.angles, "point": POINT, "source": SOURCE}
    job = FigureJob("toy/directions", settings, 8, partial(_directions, size.angles))
    return [gradients.surface_job(), job]


def _directions(estimates: int, tick: Tick) -> Arrays:
    rho, source = gradients.rho_of(*POINT), gradients.rho_of(*SOURCE)
    how = [{key: ESTIMATORS[m][key] for key in ("weighting", "baseline")} for m in COMPARED]

    def one(key: jax.Array) -> jax.Array:
        return gradients.estimated(key, rho, source, gradients.N, how)

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), estimates)
        found = np.asarray(jax.jit(jax.vmap(one))(keys))
        on_policy = gradients.on_policy_gradient(jax.random.key(1), rho, gradients.ON_POLICY)
    tick(1.0)
    return {"gradients": found, "on_policy": np.asarray(on_policy)}


def collect_directions(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Estimates `[M, 2]` by method, and their angles to the true gradient in degrees `[M]`."""
    found = results["toy/directions"]
    truth = gradients.true_gradient(results["toy/surface"]["mean"], *POINT)
    data = {"truth": truth, "on_policy": found["on_policy"]}
    for i, method in enumerate(COMPARED):
        each = found["gradients"][:, i]
        turn = np.arctan2(each[:, 1], each[:, 0]) - np.arctan2(truth[1], truth[0])
        data[method] = each
        data[f"{method} angle"] = (np.degrees(turn) + 180) % 360 - 180
    return data


def _within(data: Arrays, method: str, low: float, high: float) -> np.ndarray:
    """1 for each estimate whose angle lies there, 0 for the others `[M]`."""
    angle = data[f"{method} angle"]
    return ((angle >= low) & (angle <= high)).astype(float)


def _about_their_mean(data: Arrays, method: str) -> np.ndarray:
    """1 for each estimate within `FAN` of the mean direction of its method, 0 for the others."""
    angle = np.radians(data[f"{method} angle"])
    mean = np.arctan2(np.sin(angle).mean(), np.cos(angle).mean())
    apart = np.degrees(np.abs((angle - mean + np.pi) % (2 * np.pi) - np.pi))
    return (apart <= FAN).astype(float)


def draw_directions(data: Arrays) -> Picture:
    """Unit directions of twenty estimates above, the histogram of all angles below."""
    figure, axes = picture(3, 2, width=9.5, height=6)
    true = data["truth"] / np.linalg.norm(data["truth"])
    for column, method in enumerate(COMPARED):
        above, below = axes[:, column]
        units = data[method][:20] / np.linalg.norm(data[method][:20], axis=1, keepdims=True)
        for unit in units:
            above.plot([0, unit[0]], [0, unit[1]], color=LOOKS[method].colour, linewidth=1)
        above.quiver(
            0,
            0,
            *true,
            angles="xy",
            scale_units="xy",
            scale=1,
            width=0.018,
            zorder=3,
            color="black",
        )
        above.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", xlabel="η")
        above.set_title(f"{method} (arrow: true gradient)", loc="left", fontsize=9)
        angles = data[f"{method} angle"]
        below.hist(
            angles,
            np.arange(-180, 181, 15),
            weights=np.full(angles.size, 1 / angles.size),
            color=LOOKS[method].colour,
            edgecolor="white",
            linewidth=0.5,
        )
        below.set(xticks=range(-180, 181, 60), xlabel="angle to the true gradient, degrees")
    axes[0, 0].set_ylabel("τ")
    axes[1, 0].set_ylabel("share of estimates")
    return figure


SAID = (
    Said(
        "toy-directions.niw-astray",
        "The angles [of NIW-PGPE] are concentrated in [-150, -90].",
        lambda data: {
            "share of niw-pgpe in there, minus 1/2": _within(data, "niw-pgpe", -150, -90) - 0.5
        },
        lambda data: (
            "Concentrated: more than half of them. Their median is "
            f"{np.median(data['niw-pgpe angle']):.0f} degrees. Angles are counted from the true "
            "gradient, anticlockwise in the plane of eta and tau."
        ),
    ),
    Said(
        "toy-directions.niw-wrong-side",
        "... which further explains the inconsistent property of the NIW-PGPE method.",
        lambda data: {
            "share of niw-pgpe beyond 90 degrees, minus 1/2": (
                (np.abs(data["niw-pgpe angle"]) > 90) - 0.5
            )
        },
        "Whatever the sign: more than half of the estimates point down instead of up.",
    ),
    Said(
        "toy-directions.iw-wide",
        "The angles [of IW-PGPE] are widely distributed in [-180, 180], which clearly illustrates "
        "the large variance problem of IW-PGPE.",
        lambda near: {
            f"1/2 minus share of iw-pgpe within {FAN} degrees of its mean direction": (
                0.5 - near["iw-pgpe"]
            ),
            "and that share of iw-pgpe-ob minus iw-pgpe": near["iw-pgpe-ob"] - near["iw-pgpe"],
        },
        "The spread, wherever the mean points: widely, if less than half lie within "
        f"{FAN} degrees of it, and fewer than those of iw-pgpe-ob.",
        lambda data: {m: _about_their_mean(data, m) for m in ("iw-pgpe", "iw-pgpe-ob")},
    ),
    Said(
        "toy-directions.iw-ob-concentrated",
        "The angles for the IW-PGPE_OB method are concentrated in [-60, 60].",
        lambda there: {
            "share of iw-pgpe-ob in there, minus 1/2": there["iw-pgpe-ob"] - 0.5,
            "and minus that of iw-pgpe": there["iw-pgpe-ob"] - there["iw-pgpe"],
        },
        "Concentrated: more than half of them.",
        lambda data: {m: _within(data, m, -FAN, FAN) for m in ("iw-pgpe", "iw-pgpe-ob")},
    ),
)

FIGURES = (
    Figure(
        "toy-directions",
        "Figure 4",
        "Directions of estimated gradients",
        "Estimates at mean -0.8 and standard deviation 0.5 from ten samples of N(-1.6, 1): twenty "
        "of them as directions in the plane of mean and standard deviation (the arrow is the true "
        "gradient), and the angles of all.",
        jobs=direction_jobs,
        collect=collect_directions,
        draw=draw_directions,
        said=SAID,
        section="S4.1.3",
    ),
)
