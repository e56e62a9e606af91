"""Figures 8, 10, 11 and 13: the upper body, and what its learned policies do in an episode."""

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.pictures.film import Film, film, film_strip, write_video
from recoup.reproduce.claims import LEAST, Claim, Contrast, contrast
from recoup.reproduce.drawing import legend, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures.reaching import OURS, SHOWN, reach_jobs
from recoup.reproduce.jobs import Arrays
from recoup.reproduce.learning import joined
from recoup.reproduce.sizes import Size
from recoup.tasks.registry import make_env, make_task

EPISODES = 20  # of each policy, where distances are measured
ARRIVED = 0.05  # m: the hand, a ball of that radius, touches the target
SHORT = 10  # steps within which the hand should arrive
FILMED = {2: 50, 4: None}  # the iteration on the strip; None: the last
STRIP = {2: (0, 2, 4, 6, 10, 100), 4: (0, 4, 6, 20, 50, 100)}


# -- along the episode: Figure 10 --


def traced(joints: int, size: Size, results: dict[str, Arrays]) -> Arrays:
    """Distances and costs `[policy, R, T]` of the mean policies after 0, 20, 50 iterations."""
    from recoup.tasks.reach import rules
    from recoup.tasks.reach.engine import engine_of
    from recoup.tasks.reach.task import trace

    task, runs = rules.reach(joints), joined(results, f"reach-{joints}", OURS)
    keys = jax.random.split(jax.random.key(0), EPISODES)
    shown = [0, *SHOWN] if FILMED[joints] else [0, *SHOWN, int(runs.checkpoints[-1])]
    servos = engine_of(task).servos
    distance, cost, torque, angle = [], [], [], []
    for iteration in shown:
        column = int(np.flatnonzero(runs.checkpoints == iteration)[0])
        went = [trace(task, 100, keys, theta) for theta in runs.mean[:, column]]
        distance.append([w.distance.mean(0) for w in went])
        cost.append([w.cost.mean(0) for w in went])
        q = np.stack([w.features.mean(0)[:, :joints] / 0.4 for w in went])
        qdot = np.stack([w.features.mean(0)[:, joints : 2 * joints] / 0.1 for w in went])
        sent = rules.command(np, servos, np.stack([w.actions.mean(0) for w in went]), 0.0)
        push = servos.kp * (sent - q - servos.zero) - servos.kd * qdot
        torque.append(np.clip(push, -servos.limit, servos.limit) ** 2)
        angle.append(q)
    return {
        "shown": np.array(shown),
        "distance": np.array(distance),
        "cost": np.array(cost),
        "torque2": np.array(torque),  # [policy, R, T, joint]
        "angle": np.array(angle),
        "theta": runs.mean[:, column],  # of the last one shown
        "returns": runs.returns[:, column],
    }


def cost_claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 10."""
    said = (_nears_fastest, _cost_falls, _shoulder_costs_more, _early_policy_is_cheaper)
    return [claim(data) for claim in said]


def _of(data: Arrays, iteration: int, key: str) -> np.ndarray:
    """What the policies after an iteration did `[R, T, ...]`."""
    return data[key][data["shown"].tolist().index(iteration)]


def _nears_fastest(data: Arrays) -> Claim:
    far = {i: _of(data, i, "distance")[:, :20].mean(-1) for i in (0, 20, 50)}
    return Claim(
        "reach-2-cost.fastest",
        "S4.3.2",
        "The policy obtained at the 50th iteration decreases the distance fastest compared "
        "with the initial policy and the policy obtained at the 20th iteration.",
        tuple(
            contrast(
                f"mean distance over 20 steps, policy {i} minus policy 50, m", far[i] - far[50]
            )
            for i in (0, 20)
        ),
    )


def _cost_falls(data: Arrays) -> Claim:
    cost = _of(data, 50, "cost")
    return Claim(
        "reach-2-cost.falls",
        "S4.3.2",
        "The control cost for the policy obtained at the 50th iteration decreases steadily "
        "until the reaching task is completed.",
        tuple(
            contrast(f"cost of step {t} minus step {t + 1}", cost[:, t - 1] - cost[:, t])
            for t in range(1, 6)
        ),
        "Steadily: from every step to the next, for the five steps that the reach takes.",
    )


def _shoulder_costs_more(data: Arrays) -> Claim:
    shoulder, elbow = _of(data, 50, "torque2")[:, :SHORT, :2].mean(1).T
    return Claim(
        "reach-2-cost.shoulder",
        "S4.3.2",
        "The robot mainly adjusts the shoulder pitch in the beginning, which consumes a larger "
        "amount of energy than controlling the elbow pitch.",
        (contrast("squared torque of shoulder minus elbow, steps 1 to 10", shoulder - elbow),),
        f"The shoulder takes {shoulder.mean() / (shoulder + elbow).mean():.0%} of it.",
    )


def _early_policy_is_cheaper(data: Arrays) -> Claim:
    cost = {i: _of(data, i, "cost").mean(-1) for i in (20, 50)}
    initial, closest = (_of(data, i, "distance").min(-1) for i in (0, 20))
    return Claim(
        "reach-2-cost.cheaper-20",
        "S4.3.2",
        "The policy obtained at the 20th iteration actually consumes less control costs, but "
        "it cannot move the arm to the target object.",
        (
            contrast("cost of policy 50 minus policy 20", cost[50] - cost[20]),
            contrast(f"closest distance of policy 20 minus {ARRIVED} m", closest - ARRIVED),
        ),
        f"Here policy 20 arrives already, {100 * closest.mean():.1f} cm from the target, and "
        f"so do {np.mean(initial < ARRIVED):.0%} of the initial mean policies.",
    )


def draw_cost(data: Arrays) -> Picture:
    """Distance and control cost along the episode of the initial, 20th and 50th policy."""
    figure, axes = picture(2, width=10, height=4)
    lines = {0: ("0.55", (0, (1, 1.3))), 20: ("#3d9bd1", (0, (4, 2))), 50: ("#0072b2", "-")}
    x = np.arange(1, 101)
    for k, iteration in enumerate(data["shown"].tolist()):
        if iteration not in lines:
            continue
        colour, line = lines[iteration]
        for ax, values in zip(axes[0], (100 * data["distance"][k], data["cost"][k]), strict=True):
            mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))
            label = "initial policy" if iteration == 0 else f"iteration {iteration}"
            ax.fill_between(x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
            ax.plot(x, mean, color=colour, linestyle=line, linewidth=1.8, label=label)
    axes[0, 0].set(xlabel="step", ylabel="hand to target, cm")
    axes[0, 1].set(xlabel="step", ylabel="control cost, (N m)²")
    axes[0, 0].set_ylim(bottom=0)
    axes[0, 1].set(yscale="log")
    legend(figure, axes[0, 0])
    return figure


# -- film strips: Figures 11 and 13 --


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


def film_policy(joints: int, data: Arrays, path: Path) -> None:
    """A video of the policy on the strip."""
    theta = _typical(data) if joints == 2 else _best(data)
    write_video(_shot(joints, tuple(theta)), path)


def strip_claims(joints: int, data: Arrays) -> list[Claim]:
    """What the paper says of Figures 11 and 13."""
    if joints == 2:
        return [_arrives_within_ten_steps(data)]
    return [_out_of_reach_of_the_arm(), _arrives_at_the_far_target(data), _waist_moves_first(data)]


def _arrives_within_ten_steps(data: Arrays) -> Claim:
    closest = data["distance"][-1][:, :SHORT].min(-1)
    return Claim(
        "reach-2-strip.arrives",
        "S4.3.2",
        "The policy learned by our proposed method successfully leads the right hand to "
        "the target object within only 10 time steps.",
        (contrast(f"{ARRIVED} m minus the closest distance within 10 steps", ARRIVED - closest),),
        f"All runs, not one typical example; {np.mean(closest < ARRIVED):.0%} of them arrive.",
    )


def _out_of_reach_of_the_arm() -> Claim:
    what = f"closest distance of the arm alone minus {ARRIVED} m"
    return Claim(
        "reach-4-strip.out-of-reach",
        "S4.3.3",
        "The object is distant from the robot and it can not be reached by only using the "
        "right arm.",
        (Contrast(what, _arm_alone() - ARRIVED, 0.0, LEAST),),
        "Geometry of the model: no run is needed.",
    )


def _arrives_at_the_far_target(data: Arrays) -> Claim:
    closest = data["distance"][-1].min(-1)
    return Claim(
        "reach-4-strip.arrives",
        "S4.3.3",
        "The policy learned by our proposed method successfully leads the right hand to the "
        "distant object.",
        (contrast(f"{ARRIVED} m minus the closest distance of a run", ARRIVED - closest),),
        f"All runs, not one example; {np.mean(closest < ARRIVED):.0%} of them come within "
        f"{100 * ARRIVED:.0f} cm, the best to {100 * closest.min():.1f} cm.",
    )


def _waist_moves_first(data: Arrays) -> Claim:
    moved = np.abs(data["angle"][-1] - data["angle"][-1][:, :1])  # [R, T, joint]
    half = (moved >= 0.5 * moved.max(1, keepdims=True)).argmax(1)
    return Claim(
        "reach-4-strip.waist-first",
        "S4.3.3",
        "The robot first adjusts the torso yaw joint, and then uses the right arm to reach the "
        "object.",
        tuple(
            contrast(
                f"steps to half of the motion, {joint} minus waist yaw",
                half[:, i] - half[:, 0].astype(float),
            )
            for i, joint in enumerate(("shoulder pitch", "shoulder roll", "elbow pitch"), 1)
        ),
    )


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


FIGURES = (
    Figure(
        "reach-model",
        "Figure 8",
        "The upper body",
        "The simulated upper body with its nine joints, standing up straight with the arms down; "
        "the target of the far task in red.",
        jobs=lambda size: [],
        collect=lambda size, results: {"joints": np.array(9)},
        claims=lambda data: [],
        draw=draw_model,
    ),
    Figure(
        "reach-2-cost",
        "Figure 10",
        "Distance and control cost along the episode",
        "The mean policies of iw-pgpe-ob at the start and after 20 and 50 iterations; mean and "
        "standard error over runs, 20 episodes each.",
        jobs=lambda size: reach_jobs(2, size, (OURS,)),
        collect=partial(traced, 2),
        claims=cost_claims,
        draw=draw_cost,
    ),
    Figure(
        "reach-2-strip",
        "Figure 11",
        "A typical reach with two joints",
        "An episode of the mean policy after 50 iterations, of the run with the median return.",
        jobs=lambda size: reach_jobs(2, size, (OURS,)),
        collect=partial(traced, 2),
        claims=partial(strip_claims, 2),
        draw=partial(draw_strip, 2),
        film=partial(film_policy, 2),
    ),
    Figure(
        "reach-4-strip",
        "Figure 13",
        "The best reach with four joints",
        "An episode of the final mean policy of the best run. (The paper's caption says the 50th "
        "iteration; its runs have 300.)",
        jobs=lambda size: reach_jobs(4, size, (OURS,)),
        collect=partial(traced, 4),
        claims=partial(strip_claims, 4),
        draw=partial(draw_strip, 4),
        film=partial(film_policy, 4),
    ),
)
