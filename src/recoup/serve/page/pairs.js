/** Two parameters of every trial, coloured by what it earned. */

import { get } from "./api.js";
import { field, h } from "./dom.js";
import { apart, plural } from "./numbers.js";
import { colours, logTicks, Plot, ramp, roomy } from "./plots.js";
import { amendable } from "./trial.js";

export function pairs(context) {
  const names = context.study.parameters.filter((one) => !one.choices).map((one) => one.name);
  if (names.length < 2) return { node: h("div", {}), update: () => null };
  let chosen = false;
  const choose = (at) => h("select", { dir: "auto", onchange: () => ((chosen = true), update()) }, names.map((name) => h("option", { value: name, selected: name === at }, name)));
  const [across, up] = [choose(names[0]), choose(names[1])];
  const host = h("div", {});
  const scale = new Plotted();
  const plot = new Plot(host, (found) => scale.describe(found, across.value, up.value, context), {
    height: 320,
    onpick: (index) => amendable(context, scale.ids[index]),
  });
  const node = h(
    "section", {}, h("h2", {}, "Two parameters together"),
    h("div.row", {}, field("Across", across), field("Up", up)), host, scale.legend,
  );
  async function update() {
    if (!chosen && context.snapshot) chosen = mostTelling(context, across, up, names);
    const query = new URLSearchParams({ x: across.value, y: up.value, limit: "2000" });
    const found = await get(`${context.base}/pairs?${query}`);
    if (query.get("x") === across.value && query.get("y") === up.value) plot.show(found); // else others were chosen meanwhile
  }
  return { node, update, end: () => plot.end() };
}

/** Begins with the two parameters that explain most of the returns, where that is known. */
function mostTelling(context, across, up, names) {
  const rows = context.snapshot?.recommendation?.matters ?? [];
  const single = rows.filter((row) => row.names.length === 1 && names.includes(row.names[0]));
  const [first, second] = single.sort((a, b) => b.share - a.share).map((row) => row.names[0]);
  if (first && second) [across.value, up.value] = [first, second];
  return true;
}

class Plotted {
  constructor() {
    this.ids = [];
    this.low = h("span", {});
    this.high = h("span", {});
    this.legend = h("div.ramp-line", { "aria-hidden": "true" }, this.low, h("span.ramp", {}), this.high);
  }

  describe(found, across, up, context) {
    const { parameters, noun } = context.study;
    const order = found.x.map((_, i) => i).filter((i) => found.value[i] !== null).sort((a, b) => found.x[a] - found.x[b]);
    const column = (key) => order.map((i) => found[key][i]);
    const values = column("value");
    const [low, high] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
    this.ids = column("id");
    const [least, most] = apart(low, high);
    this.low.textContent = values.length ? `${noun} ${least}` : "";
    this.high.textContent = values.length ? most : "";
    const scale = (name) => {
      const log = parameters.find((one) => one.name === name).scale === "log";
      return { ...(log ? { distr: 3 } : {}), range: roomy(log) };
    };
    const ticks = (name) => (scale(name).distr ? { splits: logTicks, filter: (_, splits) => splits } : {});
    return {
      said: `${plural(order.length, "trial")}: ${up} over ${across}, coloured by ${noun}.`,
      none: "No results yet.",
      data: [column("x"), column("y"), values],
      series: [{}, { paths: () => null, points: { show: false } }, { paths: () => null, points: { show: false }, scale: "hidden" }],
      names: [across, up, noun],
      x: scale(across),
      y: scale(up),
      across: ticks(across),
      up: ticks(up),
      hooks: { draw: [(plot) => dots(plot, column("x"), column("y"), values, low, high)] },
      pick: nearest,
    };
  }
}

/** The trial that is nearest to the pointer, up and down as well. */
function nearest(plot, series, index) {
  const { left, top } = plot.cursor;
  if (left < 0) return index;
  const [xs, ys] = plot.data;
  let best = null;
  let least = 30 ** 2;
  for (let i = 0; i < xs.length; i += 1) {
    const away = (plot.valToPos(xs[i], "x") - left) ** 2 + (plot.valToPos(ys[i], "y") - top) ** 2;
    if (away < least) [best, least] = [i, away];
  }
  return best;
}

function dots(plot, xs, ys, values, low, high) {
  const { ctx } = plot;
  const radius = 4 * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  ctx.clip();
  ctx.strokeStyle = colours().soft;
  for (let i = 0; i < xs.length; i += 1) {
    ctx.beginPath();
    ctx.arc(plot.valToPos(xs[i], "x", true), plot.valToPos(ys[i], "y", true), radius, 0, 2 * Math.PI);
    ctx.fillStyle = ramp(high > low ? (values[i] - low) / (high - low) : 0.5);
    ctx.fill();
    ctx.stroke();
  }
  ctx.restore();
}
