/** Runs beside each other: a curve each, on the same axes where they are of the same task. */

import { get } from "./api.js";
import { complain, complaint, fill, h, named } from "./dom.js";
import { coalesced } from "./live.js";
import { measured } from "./numbers.js";
import { roomy, Plot } from "./plots.js";
import { curve } from "./run.js";

const EVERY = 5000;

export function runs({ top, main }) {
  document.title = "Runs \u2013 Recoup";
  fill(top, h("div.bar", {}, h("a", { href: "#/" }, "All studies"), h("strong", {}, "Runs")));
  const host = h("div.plots", {});
  const none = h("p.soft", { hidden: true }, "No run.");
  const wrong = complaint();
  fill(main, h("h1", {}, "Runs side by side"), h("p.soft", {}, "Expected return over episodes, and one standard error around it. Runs of one task have the same axes."), wrong, none, host);
  const kept = new Map(); // name -> its figure
  const look = coalesced(async () => {
    if (document.hidden) return;
    try {
      const { runs: served } = await get("/v1");
      none.hidden = served.length > 0;
      for (const { name } of served) {
        if (!kept.has(name)) kept.set(name, new Figure(name, host));
        await kept.get(name).look(); // one after the other: each is drawn as soon as it is there
        align([...kept.values()]);
      }
      complain(wrong);
    } catch (problem) {
      if (problem.status && problem.status !== 401) complain(wrong, problem.message);
    }
  });
  look();
  const timer = setInterval(look, EVERY);
  return { name: null, again: look, end: () => (clearInterval(timer), kept.forEach((one) => one.plot.end())) };
}

/** A run: its name, what it is, its curve. */
class Figure {
  constructor(name, host) {
    this.base = `/v1/runs/${encodeURIComponent(name)}`;
    this.about = h("p.soft", {});
    this.wrong = complaint();
    const place = h("div", {});
    this.plot = new Plot(place, (found) => this.drawn(found), { height: 220 });
    host.append(h("figure", {}, h("figcaption", {}, h("a", { href: `#/run/${encodeURIComponent(name)}` }, named(name)), this.about), this.wrong, place));
  }

  async look() {
    try {
      const run = await get(this.base);
      const found = await get(`${this.base}/curve`);
      this.run = run;
      this.found = found;
      const worth = run.return_mean_policy;
      fill(this.about, named(`${run.task}, ${run.method}`), worth ? `; the mean policy: ${measured(worth.mean, worth.stderr)}` : "");
      complain(this.wrong);
    } catch (problem) {
      if (!problem.status || problem.status === 401) throw problem;
      complain(this.wrong, problem.message); // of this run: the others are shown
    }
  }

  drawn({ found, ends }) {
    const [x, low, high] = ends;
    return { ...curve(found), x: { range: [0, x] }, y: { range: roomy(false)(null, low, high) } };
  }

  show(ends) {
    const now = JSON.stringify([this.found, ends]);
    if (now !== this.last) this.plot.show({ found: this.found, ends });
    this.last = now;
  }
}

/** Draws those that have changed, those of a task from the least to the greatest of all of them. */
function align(figures) {
  const there = figures.filter((one) => one.found);
  for (const task of new Set(there.map((one) => one.run.task))) {
    const same = there.filter((one) => one.run.task === task);
    const data = same.map((one) => curve(one.found).data);
    const values = data.flatMap(([, up, down]) => [...up, ...down]).filter((value) => value !== null);
    const last = Math.max(...data.flatMap(([episodes]) => episodes), 1);
    const ends = [last, Math.min(...values), Math.max(...values)];
    for (const one of same) one.show(ends);
  }
}
