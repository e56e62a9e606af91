/** See: how the search fares, in plots, in words and as a table. */

import { get } from "./api.js";
import { button, fill, h, named, say } from "./dom.js";
import { coalesced } from "./live.js";
import { between, fromTo, percent, plural, short, telling } from "./numbers.js";
import { pairs } from "./pairs.js";
import { colours, Plot, roomy, threeTicks } from "./plots.js";
import { looked, table } from "./table.js";
import { amendable } from "./trial.js";
import { filter, titled } from "./values.js";

const REST = 1500; // ms between two looks at the same: results may come faster than they are drawn
const LONGEST = 20000; // ms of such a rest
const AT_ONCE = 12; // parameters that are drawn without being looked at

export function see(context) {
  const two = pairs(context);
  const rows = table(context);
  const words = summary(context, () => updates.get(two)());
  const parts = [words, moving(context, () => updates.get(rows)()), two, rows];
  const updates = new Map(parts.map((part) => [part, paced(() => tried(part))]));
  const node = h("div", {}, h("h1.hidden", {}, "How it fares"), parts.map((part) => part.node));
  const update = () => [...parts.slice(1), words].forEach((part) => updates.get(part)()); // what takes longest is asked for last
  const end = () => {
    updates.forEach((one) => one.stop());
    parts.forEach((part) => part.end?.());
  };
  return { node, update, end };
}

/** One call at a time and a rest after it, longer after what takes long; what comes meanwhile is one more call afterwards. */
function paced(call) {
  let ended = false;
  const run = coalesced(async () => {
    if (ended) return;
    const start = performance.now();
    await call();
    const rest = Math.min(3 * (performance.now() - start), LONGEST);
    await new Promise((done) => setTimeout(done, Math.max(REST, rest)));
  });
  return Object.assign(run, { stop: () => (ended = true) });
}

/** What is drawn of results and of moves; moves are read once for both. */
function moving(context, then) {
  const parts = [returns(context, then), parameters(context)];
  const node = h("div", {}, parts.map((part) => part.node));
  const update = () => {
    const moves = get(`${context.base}/moves`);
    return Promise.all(parts.map((part) => part.update(moves)));
  };
  return { node, update, end: () => parts.forEach((part) => part.end()) };
}

/** Each part comes as soon as it can, whatever becomes of the others. */
async function tried(part) {
  try {
    await part.update();
  } catch (wrong) {
    if (wrong.status && wrong.status !== 401) say(wrong.message);
  }
}

/** What the study says of itself: tiles, then its advice. */
function summary(context, then) {
  const tiles = h("div.tiles", {}, h("p.soft", {}, "Being computed\u2026"));
  const advice = h("ul.advice", {});
  const limits = h("div", {});
  const node = h("section", { "aria-label": "In short" }, tiles, limits, h("h2", {}, "What it says"), advice);
  const best = () => tiles.querySelector("button");
  const update = async () => {
    const found = await get(`${context.base}/snapshot`);
    const first = !context.snapshot;
    context.snapshot = found;
    if (first) then();
    const { study } = context;
    const worth = found.expected_return_of_mean_policy;
    const draw = found.expected_return_of_a_draw;
    const reuse = found.reuse ?? {};
    const digits = Math.max(5, telling(...(worth?.interval ?? [])));
    const held = tiles.contains(document.activeElement);
    fill(
      tiles,
      tile(known(worth), `expected ${study.noun} of the mean policy`),
      tile(known(draw), "of a draw of the newest distribution"),
      tile(study.best && short(study.best.value, digits), "best trial so far", study.best && (() => looked(context, study.best.id, best))),
      tile(found.verdict, "verdict"),
      tile(found.failures.number ? `${found.failures.number} (${percent(found.failures.share)})` : "none", "failed"),
      tile(of(reuse.ess, reuse.samples), "the results of the last move count for"),
      tile(reuse.max_weight === null || reuse.max_weight === undefined ? null : short(reuse.max_weight, 3), "largest weight"),
      tile(reuse.pareto_k === null || reuse.pareto_k === undefined ? null : short(reuse.pareto_k, 2), "k-hat: above 0.7 weights are not to be relied on"),
    );
    if (held) best()?.focus({ preventScroll: true });
    fill(limits, (found.limits ?? []).map(limitLine));
    fill(advice, found.advice.map((text) => h("li", {}, text)));
  };
  return { node, update };
}

function known(worth) {
  if (!worth || worth.mean === null) return "not known";
  return between(worth.mean, ...(worth.interval ?? []));
}

function of(ess, samples) {
  return ess === null || ess === undefined ? null : `${short(ess, 3)} of ${short(samples)}`;
}

function tile(value, label, onclick = null) {
  if (value === null || value === undefined) return null;
  const shown = onclick ? h("button.link", { type: "button", onclick }, value) : value;
  return h("div.tile", {}, h("b", {}, shown), h("span", {}, label));
}

function limitLine(limit) {
  const { chance, low, high, within } = limit;
  const ends = typeof low === "number" && typeof high === "number" ? ` (95\u00a0%: ${share(low)} to ${share(high)})` : "";
  const kept = typeof chance === "number" ? `; kept with probability ${share(chance)}${ends}, asked for ${short(within, 3)}` : "";
  return h("p", {}, h("b", {}, named(limit.limit)), `: broken ${limit.broken} of ${limit.told} times${kept}`);
}

/** A chance; no model is as sure as that it is 0 or 1. */
function share(chance) {
  if (chance > 0.999) return "more than 0.999";
  return chance < 0.001 ? "less than 0.001" : short(chance, 3);
}

/** Returns over trials, failures along the edge where the worst lie, the estimate of each move with its interval. */
function returns(context, then) {
  const { noun, unit } = context.study;
  const host = h("div", {});
  const caption = h("p.soft", {});
  const plot = new Plot(host, (found) => describe(found, context), {
    height: 300,
    onpick: (index, now) => amendable(context, now.data[0][index]),
  });
  const zooms = matchMedia("(pointer: coarse)").matches && h("div.row", {}, button("Zoom in on the newest", () => plot.newest()), button("Show all", () => plot.all()));
  const node = h("section", {}, h("h2", {}, `${noun[0].toUpperCase()}${noun.slice(1)} over trials`, unit && h("span.unit", {}, " in ", named(unit))), host, zooms, caption);
  const update = async (asked) => {
    const width = Math.min(Math.max(Math.round(host.clientWidth) || 800, 300), 2000);
    context.points = get(`${context.base}/points?width=${width}`);
    const points = await context.points;
    const other = points.events !== context.events;
    context.events = points.events;
    if (other) then();
    const moves = await asked;
    plot.show({ points, moves });
    const thinned = points.shown < points.total ? ` ${plural(points.total, "result")} are thinned to ${points.shown} points: strokes join the least and the greatest of neighbours.` : "";
    const drawn = (moves.expected ?? []).some((value) => value !== null) ? " The line is the estimate of each move, with its 95\u00a0% interval where there is one." : "";
    const how = zooms ? "" : ", drag to zoom, double-click to see all";
    caption.textContent = `Each point is a trial: choose one to see it${how}. Marks at the ${noun === "cost" ? "top" : "foot"} failed.${drawn}${thinned}`;
  };
  return { node, update, end: () => plot.end() };
}

function describe({ points, moves }, context) {
  const { accent, fails, second, band } = colours();
  const rows = new Map(points.id.map((id, i) => [id, { value: points.value[i] }]));
  for (const id of points.failed) rows.set(id, { ...rows.get(id), failed: true });
  const estimates = (moves.expected ?? []).map((value, i) => [moves.trial[i], value, moves.expected_low?.[i] ?? null, moves.expected_high?.[i] ?? null]);
  for (const [at, value, low, high] of estimates) if (value !== null && at !== null) rows.set(at, { ...rows.get(at), estimate: value, low, high });
  const ids = [...rows.keys()].sort((a, b) => a - b);
  const column = (key) => ids.map((id) => rows.get(id)[key] ?? null);
  const values = column("value");
  const told = values.filter((value) => value !== null);
  const [low, high] = told.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  const said = told.length ? `${plural(points.total, "result")}; ${context.study.noun}s ${fromTo(low, high)}.` : "No results yet.";
  return {
    said,
    none: "No results yet.",
    data: [ids, values, column("high"), column("low"), column("estimate"), ids.map(() => null)],
    series: [
      {},
      points.shown < points.total ? strokes(band, accent) : { stroke: accent, paths: () => null, points: { show: true, size: 6, fill: accent, stroke: accent } },
      { stroke: "transparent", spanGaps: true, points: { show: false } },
      { stroke: "transparent", spanGaps: true, points: { show: false } },
      { stroke: second, width: 2, spanGaps: true, points: { show: false } },
      { stroke: fails },
    ],
    bands: [{ series: [2, 3], fill: band }],
    names: ["trial", context.study.noun, null, null, "estimate", null],
    hooks: { draw: [(made) => crosses(made, points.failed, fails, context.study.noun === "cost")] },
  };
}

/** Least and greatest of neighbours, joined: two rows of dots would look like two kinds of trials. */
function strokes(band, accent) {
  return { stroke: band, width: 3, spanGaps: true, points: { show: true, size: 3, fill: accent, stroke: accent } };
}

/** A mark at the foot of the plot, or at its top, for each trial that failed. */
function crosses(plot, failed, colour, top) {
  const { ctx, bbox } = plot;
  const size = 4 * devicePixelRatio;
  const y = bbox.top + (top ? 1.5 * size : bbox.height - 1.5 * size);
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.beginPath();
  for (const id of failed) {
    const x = plot.valToPos(id, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.moveTo(x - size, y - size);
    ctx.lineTo(x + size, y + size);
    ctx.moveTo(x - size, y + size);
    ctx.lineTo(x + size, y - size);
  }
  ctx.stroke();
  ctx.restore();
}

/** Mean and one standard deviation of every parameter over moves, each drawn when it is seen. */
function parameters(context) {
  let moves = null;
  const rows = context.study.parameters.map((parameter) => {
    const host = h("div.small-plot", {});
    const node = h("figure.parameter", {}, h("figcaption", {}, titled(parameter), " ", h("span.soft", {})), host);
    return { parameter, host, node, plot: null, seen: false };
  });
  const draw = (row) => {
    if (!row.seen || !moves) return;
    row.plot ??= new Plot(row.host, (found) => spread(found, row.parameter), { height: 130 });
    row.plot.show(moves);
    const mean = moves.mean[row.parameter.name]?.at(-1);
    row.node.querySelector("figcaption .soft").textContent = mean === undefined || mean === null ? "" : short(mean);
  };
  if (rows.length <= AT_ONCE) rows.forEach((row) => (row.seen = true));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const row = rows.find((one) => one.node === entry.target);
      row.seen ||= entry.isIntersecting;
      draw(row);
    }
  }, { rootMargin: "200px" });
  rows.forEach((row) => watch.observe(row.node));
  const node = h(
    "section", {}, h("h2", {}, "Parameters over moves"),
    h("p.soft", {}, "The mean of the search, and one standard deviation around it."),
    rows.length > AT_ONCE ? filter(rows) : null, h("div.plots", {}, rows.map((row) => row.node)),
  );
  const update = async (asked) => {
    moves = await asked;
    rows.forEach(draw);
  };
  const end = () => {
    watch.disconnect();
    rows.forEach((row) => row.plot?.end());
  };
  return { node, update, end };
}

function spread(moves, parameter) {
  const { accent, band } = colours();
  const mean = moves.mean[parameter.name] ?? [];
  const numeric = mean.every((value) => typeof value === "number" || value === null);
  if (!numeric) return { said: `Choices of ${parameter.name}.`, none: `${mean.at(-1)}, after ${plural(mean.length - 1, "move")}.`, data: [[]], series: [{}], names: [] };
  const edge = (key) => moves[key]?.[parameter.name] ?? mean.map(() => null);
  const log = parameter.scale === "log" && mean.every((value) => value > 0);
  return {
    said: `${parameter.name}: the mean went ${fromTo(mean[0], mean.at(-1))} in ${plural(mean.length - 1, "move")}.`,
    data: [moves.move, edge("high"), edge("low"), mean],
    series: [{}, { stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } }, { stroke: accent, width: 2, points: { show: mean.length < 3 } }],
    bands: [{ series: [1, 2], fill: band }],
    names: ["move", "up to", "from", "mean"],
    y: { ...(log ? { distr: 3 } : {}), range: roomy(log) },
    up: { splits: threeTicks(log), filter: (_, splits) => splits },
  };
}
