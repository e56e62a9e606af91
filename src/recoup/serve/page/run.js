/** A run of `recoup train`: what it is, and how it learned. */

import { get } from "./api.js";
import { complain, complaint, facts, fill, h, named } from "./dom.js";
import { coalesced } from "./live.js";
import { short } from "./numbers.js";
import { Plot, colours } from "./plots.js";

const EVERY = 5000;

export function run({ name, top, main }) {
  const base = `/v1/runs/${encodeURIComponent(name)}`;
  document.title = `${name.slice(0, 80)} \u2013 Recoup`;
  fill(top, h("div.bar", {}, h("a", { href: "#/" }, "All studies"), h("strong", {}, named(name))));
  const about = h("div", {});
  const host = h("div", {});
  const films = h("div", {});
  const wrong = complaint();
  fill(main, h("h1", {}, named(name)), wrong, about, h("h2", {}, "Expected return over episodes"), host, films);
  const plot = new Plot(host, curve);
  const drawAbout = whenOther((found) => fill(about, facts(Object.entries(found).filter(([key, value]) => plain(value) && !LEFT_OUT.includes(key)).map(([key, value]) => [words(key), shown(value)]))));
  const drawFilm = whenOther((there) => fill(films, there && film(base)));
  const drawCurve = whenOther((found) => plot.show(found));
  const look = coalesced(async () => {
    if (document.hidden) return;
    try {
      const found = await get(base);
      drawAbout(found);
      drawFilm(found.film);
      drawCurve(await get(`${base}/curve`));
      complain(wrong);
    } catch (problem) {
      if (problem.status && problem.status !== 401) complain(wrong, problem.message);
    }
  });
  look();
  const timer = setInterval(look, EVERY);
  return { name: null, again: look, end: () => (clearInterval(timer), plot.end()) };
}

const LEFT_OUT = ["name", "study", "run", "film"];
const WORDS = { wall_s: "seconds it took" };

function words(key) {
  if (WORDS[key]) return WORDS[key];
  return key.replaceAll("_", " ");
}

function plain(value) {
  return ["string", "number", "boolean"].includes(typeof value) && value !== "";
}

function shown(value) {
  return typeof value === "boolean" ? (value ? "yes" : "no") : typeof value === "number" ? short(value) : named(value);
}

/** Draws what is another than it was: a film goes on, and a plot stays as it was dragged. */
function whenOther(draw) {
  let last;
  return (found) => {
    const now = JSON.stringify(found);
    if (now !== last) draw(found);
    last = now;
  };
}

function film(base) {
  return h("figure", {}, h("video", { src: `${base}/film`, controls: true, muted: true, playsInline: true, preload: "metadata" }), h("figcaption", {}, "An episode of its policy"));
}

/** What uPlot draws of a curve: the mean, and one standard error around it. */
function curve(found) {
  const { accent, band } = colours();
  const error = found.stderr ?? found.mean.map(() => null);
  const edge = (sign) => found.mean.map((value, i) => (value === null || error[i] === null ? null : value + sign * error[i]));
  return {
    said: `A curve of ${found.mean.length} points.`,
    data: [found.episodes, edge(1), edge(-1), found.mean],
    series: [{}, { stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } }, { stroke: accent, width: 2 }],
    bands: [{ series: [1, 2], fill: band }],
    names: ["episodes", null, null, "return"],
  };
}
