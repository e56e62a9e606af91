/** uPlot with this page's colours, sizes and words; drawn again in the other colour scheme. */

import { fill, h } from "./dom.js";
import { short, telling, ticks } from "./numbers.js";

const TWICE = 300; // ms within which a second click makes a double one

const dark = matchMedia("(prefers-color-scheme: dark)");

/** The colours of the page as they are now. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"), soft: of("soft"), line: of("line"), accent: of("accent"), band: of("band"),
    fails: of("fails"), paper: of("paper"), second: of("second"),
  };
}

/** One plot in `host`. `describe(found)` says what is drawn: data, series, names, said. */
export class Plot {
  constructor(host, describe, { height = 260, onpick = null } = {}) {
    this.canvas = h("div.plot", { role: "img" });
    this.readout = h("p.readout", { "aria-hidden": "true" }, "\u00a0");
    fill(host, this.canvas, this.readout);
    this.describe = describe;
    this.height = height;
    this.onpick = onpick;
    this.zoom = null; // part of x that is looked at, as it was dragged or counted from the end
    this.sizes = new ResizeObserver(() => this.fit());
    this.sizes.observe(this.canvas);
    this.redraw = () => this.found && this.draw();
    dark.addEventListener("change", this.redraw);
  }

  show(found) {
    this.found = found;
    this.draw();
  }

  draw() {
    const now = this.describe(this.found);
    this.now = now;
    this.canvas.setAttribute("aria-label", now.said);
    this.made?.destroy();
    this.made = null;
    if (!now.data[0].length) return fill(this.canvas, h("p.soft", {}, now.none ?? "Nothing to draw yet."));
    fill(this.canvas);
    this.made = new uPlot(this.options(now), now.data, this.canvas);
    const part = this.part(now);
    if (part) this.made.setScale("x", part);
    return this.made;
  }

  /** The part of x that was zoomed in on, while it is of the same. */
  part({ names, data: [x] }) {
    if (this.zoom?.of !== names[0]) this.zoom = null;
    const { last, min, max } = this.zoom ?? {};
    if (last) return { min: x.at(-1) - last, max: x.at(-1) };
    return this.zoom && { min, max };
  }

  dragged(plot) {
    const { left, width } = plot.select;
    if (width > 0) this.zoom = { of: this.now.names[0], min: plot.posToVal(left, "x"), max: plot.posToVal(left + width, "x") };
  }

  /** Half of what is seen, up to the newest, and what comes. */
  newest() {
    if (!this.made) return;
    const { min, max } = this.made.scales.x;
    this.zoom = { of: this.now.names[0], last: (max - min) / 2 };
    this.draw();
  }

  all() {
    this.zoom = null;
    if (this.made) this.draw();
  }

  options(now) {
    const { soft, line } = colours();
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: soft, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, labelFont: font };
    const values = (_, splits) => ticks(splits);
    return {
      width: this.canvas.clientWidth || 320,
      height: now.height ?? this.height,
      series: now.series,
      bands: now.bands ?? [],
      scales: { x: { time: false, ...now.x }, y: { ...now.y } },
      axes: [
        { ...axis, values, ...now.across, size: 34 },
        { ...axis, values, ...now.up, size: (plot, found) => Math.max(44, 20 + 7 * Math.max(0, ...(found ?? []).map((text) => text.length))) },
      ],
      legend: { show: false },
      cursor: { drag: { x: true, y: false }, points: { size: 8 }, ...(now.pick ? { dataIdx: now.pick } : {}) },
      hooks: { ...now.hooks, setSelect: [(plot) => this.dragged(plot)], setCursor: [(plot) => this.read(plot)], ready: [(plot) => this.listen(plot)] },
    };
  }

  /** What stands under the cursor, in words under the plot. */
  read(plot) {
    const parts = [];
    for (let i = 0; i < this.now.names.length; i += 1) {
      const at = plot.cursor.idxs?.[i] ?? plot.cursor.idx;
      const name = this.now.names[i];
      const value = at === null || at === undefined ? null : this.now.data[i][at];
      if (name && value !== null && value !== undefined) parts.push(`${name} ${short(value, digitsOf(plot, i))}`);
    }
    this.readout.textContent = parts.join(" \u00b7 ") || "\u00a0";
  }

  listen(plot) {
    plot.over.addEventListener("dblclick", () => (this.zoom = null));
    if (!this.onpick) return;
    let at = 0;
    plot.over.addEventListener("pointerdown", (event) => (at = event.clientX));
    plot.over.addEventListener("click", (event) => {
      const index = plot.cursor.idxs?.find((x) => x !== null && x !== undefined) ?? plot.cursor.idx;
      clearTimeout(this.later);
      if (Math.abs(event.clientX - at) >= 4 || index === null || index === undefined || event.detail > 1) return;
      const { now } = this;
      this.later = setTimeout(() => this.onpick(index, now), this.zoom ? TWICE : 0); // a second click shows all
    });
  }

  fit() {
    const width = this.canvas.clientWidth;
    if (this.made && width && width !== this.made.width) this.made.setSize({ width, height: this.made.height });
  }

  end() {
    clearTimeout(this.later);
    this.sizes.disconnect();
    dark.removeEventListener("change", this.redraw);
    this.made?.destroy();
    this.made = null;
    this.show = () => null; // what was asked for comes too late
  }
}

/** Of what is drawn by a scale, so many digits that neighbours differ. */
function digitsOf(plot, i) {
  const { min, max } = plot.scales[plot.series[i].scale] ?? {};
  return Math.max(6, telling(min, max));
}

/** Room around the first and the last value, so that no point is cut by the edge. */
export function roomy(log) {
  return (_, low, high) => {
    if (low === null || high === null) return [null, null];
    if (log) return [low / (high / low || 1) ** 0.05 / 1.02, high * (high / low || 1) ** 0.05 * 1.02];
    const room = 0.05 * (high - low) || 0.1 * Math.abs(high) || 1;
    return [low - room, high + room];
  };
}

/** Ticks at 1, 2 and 5 times powers of ten. */
export function logTicks(plot, at, low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    for (const digit of [1, 2, 5]) found.push(Number(`${digit}e${power}`));
  }
  const inside = found.filter((value) => value >= low && value <= high);
  return inside.length > 1 ? inside : threeTicks(true)(plot, at, low, high);
}

/** Three ticks, for a plot that is too small for more. */
export function threeTicks(log) {
  return (_, at, low, high) => {
    const middle = log ? Math.sqrt(low * high) : (low + high) / 2;
    const inner = (end) => (log ? middle * (end / middle) ** 0.8 : middle + 0.8 * (end - middle));
    return [inner(low), middle, inner(high)].map((value) => Number(value.toPrecision(Math.max(3, telling(low, high) - 1))));
  };
}

const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/** The colour of a share from 0 to 1: dark is low, bright is high. */
export function ramp(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(at), RAMP.length - 2);
  const mix = RAMP[low].map((value, i) => Math.round(value + (RAMP[low + 1][i] - value) * (at - low)));
  return `rgb(${mix.join(",")})`;
}
