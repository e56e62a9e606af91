"""Figures 8, 11 and 13: the upper body, and films of what it has learned."""

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.outputs import Over
from recoup.pictures.film import Film, film, film_strip, write_video
from recoup.reproduce.claims import Contrast, Said, certain, contrast
from recoup.reproduce.drawing import picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures.episode_figures import ARRIVED, SHORT, closest, half_way, traced
from recoup.reproduce.figures.reaching import OURS, reach_jobs
from recoup.reproduce.jobs import Arrays
from recoup.tasks.registry import make_env, make_task

STRIP = {2: (0, 2, 4, 6, 10, 100), 4: (0, 4, 6, 20, 50, 100)}
WAIST = "waist_yaw"
ARM = {"r_sh_pitch": "shoulder pitch", "r_sh_roll": "shoulder roll", "r_el_pitch": "elbow pitch"}


def _typical(data: Arrays) -> np.ndarray:
    """The mean policy of the run whose final return is the median."""
    order = np.argsort(data["returns"])
    return data["theta"][order[len(order) // 2]]


def _best(data: Arrays) -> np.ndarray:
    return data["theta"][np.argmax(data["returns"])]


@lru_cache(maxsize=2)
def _shot(joints: int, policy: tuple[float, ...]) -> Film:
    """An episode on film, once for the strip and the video."""
    theta = np.array(policy)
    task, env = make_task(f"reach-{joints}"), make_env(f"reach-{joints}", "rgb_array")
    try:
        return film(env, lambda seen: task.act(theta, seen))
    finally:
        env.close()


def draw_strip(joints: int, data: Arrays) -> Picture:
    """Frames of the typical policy; at four joints of the best one too."""
    theta = _typical(data) if joints == 2 else _best(data)
    which = "the median run" if joints == 2 else "the best run"
    shot = _shot(joints, tuple(theta))
    steps = [s for s in STRIP[joints] if s < len(shot.frames)]
    return film_strip(shot, f"{OURS}, {which} of {len(data['theta'])}", steps)


def film_policy(joints: int, data: Arrays, path: Path, over: Over) -> None:
    """A video of the policy on the strip."""
    theta = _typical(data) if joints == 2 else _best(data)
    write_video(_shot(joints, tuple(theta)), path, over)


def _arm_alone() -> float:
    """The closest that the hand comes to the far target while the waist stays, in m."""
    from recoup.tasks.reach.body import compile_body, import_mujoco
    from recoup.tasks.reach.rules import FAR

    mujoco, model = import_mujoco(), compile_body(4, FAR)
    data, (low, high) = mujoco.MjData(model), model.jnt_range.T
    closest = np.inf
    for share in np.stack(np.meshgrid(*[np.linspace(0, 1, 21)] * 3), -1).reshape(-1, 3):
        data.qpos[:] = [0.0, *(low[1:] + share * (high - low)[1:])]
        mujoco.mj_kinematics(model, data)
        closest = min(closest, float(np.linalg.norm(data.site("hand").xpos - FAR)))
    return closest


# -- the model: Figure 8 --


def draw_model(data: Arrays) -> Picture:
    """The upper body with its nine joints named."""
    from recoup.tasks.reach.body import import_mujoco

    figure, axes = picture(width=8, height=6)
    ax = axes[0, 0]
    env = make_env("reach-9", "rgb_array")
    env.reset(seed=0)
    try:
        ax.imshow(env.render())
        places = _joints_in_picture(env.unwrapped, import_mujoco())
    finally:
        env.close()
    ax.set_axis_off()
    for (x, y), names in _together(places).items():
        left = names[0].startswith("r_")
        ax.plot(x, y, "o", color="#d55e00", markeredgecolor="white", markersize=7)
        ax.annotate(
            "\n".join(names),
            (x, y),
            (-75 if left else 55, 0 if left else 22),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=10,
            bbox={"boxstyle": "round,pad=0.25", "fc": "white", "ec": "0.7", "alpha": 0.9},
            arrowprops={"arrowstyle": "-", "color": "0.2", "lw": 0.8},
        )
    return figure


def _together(places: dict[str, tuple[float, float]]) -> dict[tuple[float, float], list[str]]:
    """The names of the joints at each place."""
    names: dict[tuple[float, float], list[str]] = {}
    for name, (x, y) in places.items():
        names.setdefault((round(x), round(y)), []).append(name)
    return names


def _joints_in_picture(env: Any, mujoco: Any) -> dict[str, tuple[float, float]]:
    """Pixels of the joints in the picture of the camera `reach`."""
    model, data, (height, width) = env.engine.model, env.data, env.size
    mujoco.mj_forward(model, data)
    camera = data.camera("reach")
    axes = camera.xmat.reshape(3, 3)
    focal = 0.5 * height / np.tan(np.radians(model.camera("reach").fovy[0]) / 2)
    places = {}
    for i in range(model.njnt):
        right, up, back = (data.xanchor[i] - camera.xpos) @ axes
        places[model.joint(i).name] = (
            width / 2 + focal * right / -back,
            height / 2 - focal * up / -back,
        )
    return places


def _last(data: Arrays) -> int:
    return int(data["shown"][-1])


def _arrives(where: str, near: np.ndarray) -> Contrast:
    """The contrast of arriving, from the closest distances of runs `[R]`."""
    what = f"{ARRIVED} m minus the closest distance {where}"
    return contrast(what, ARRIVED - near, most=ARRIVED)


FOUR_SAID = (
    Said(
        "reach-4-strip.out-of-reach",
        "The object is distant from the robot and it can not be reached by only using the "
        "right arm.",
        lambda data: [
            certain(
                f"closest distance of the arm alone minus {ARRIVED} m",
                float(data["arm alone"]) - ARRIVED,
            )
        ],
        "Geometry of the model: no run is needed.",
    ),
    Said(
        "reach-4-strip.arrives",
        "The policy learned by our proposed method successfully leads the right hand to the "
        "distant object.",
        lambda near: [_arrives("of a run", near)],
        lambda near: (
            f"All runs, not one example; {np.mean(near < ARRIVED):.0%} of them come within "
            f"{100 * ARRIVED:.0f} cm, the best to {100 * near.min():.1f} cm."
        ),
        lambda data: closest(data, _last(data)),
    ),
    Said(
        "reach-4-strip.waist-first",
        "The robot first adjusts the torso yaw joint, and then uses the right arm to reach the "
        "object.",
        lambda data: {
            f"steps to half of the motion, {words} minus waist yaw": (
                half_way(data, _last(data), name) - half_way(data, _last(data), WAIST)
            )
            for name, words in ARM.items()
        },
    ),
)
TWO_SAID = (
    Said(
        "reach-2-strip.arrives",
        "The policy learned by our proposed method successfully leads the right hand to "
        "the target object within only 10 time steps.",
        lambda near: [_arrives(f"within {SHORT} steps", near)],
        lambda near: (
            f"All runs, not one typical example; {np.mean(near < ARRIVED):.0%} of them arrive."
        ),
        lambda data: closest(data, 50, SHORT),
    ),
)

FIGURES = (
    Figure(
        "reach-model",
        "Figure 8",
        "The upper body",
        "The simulated upper body with its nine joints, standing up straight with the arms down; "
        "the target of the far task in red.",
        jobs=lambda size: [],
        collect=lambda size, results: {"joints": np.array(9)},
        draw=draw_model,
    ),
    Figure(
        "reach-2-strip",
        "Figure 11",
        "A typical reach with two joints",
        "An episode of the mean policy after 50 iterations, of the run with the median return.",
        jobs=lambda size: reach_jobs(2, size, (OURS,)),
        collect=partial(traced, 2),
        draw=partial(draw_strip, 2),
        said=TWO_SAID,
        section="S4.3.2",
        film=partial(film_policy, 2),
    ),
    Figure(
        "reach-4-strip",
        "Figure 13",
        "The best reach with four joints",
        "An episode of the final mean policy of the best run. (The paper's caption says the 50th "
        "iteration; its runs have 300.)",
        jobs=lambda size: reach_jobs(4, size, (OURS,)),
        collect=lambda *found: {**traced(4, *found), "arm alone": np.array(_arm_alone())},
        draw=partial(draw_strip, 4),
        said=FOUR_SAID,
        section="S4.3.3",
        film=partial(film_policy, 4),
    ),
)
