/** A run of `recoup train`: what it is, and how it learned. */

import { file, get } from "./api.js";
import { complain, complaint, facts, fill, h, named } from "./dom.js";
import { coalesced } from "./live.js";
import { fromTo, measured, plural, short } from "./numbers.js";
import { Plot, colours } from "./plots.js";

const EVERY = 5000;

export function run({ name, top, main }) {
  const base = `/v1/runs/${encodeURIComponent(name)}`;
  document.title = `${name.slice(0, 80)} \u2013 Recoup`;
  fill(top, h("div.bar", {}, h("a", { href: "#/" }, "All studies"), h("strong", {}, named(name))));
  const about = h("div", {});
  const host = h("div", {});
  const late = complaint();
  const whole = h("p", {}, h("a", { href: `#/study/${encodeURIComponent(name)}/see` }, "Its study: every trial, and the parameters over moves"));
  const films = h("div", {});
  const wrong = complaint();
  fill(main, h("h1", {}, named(name)), wrong, late, about, whole, h("h2", {}, "Expected return over episodes"), host, films);
  const plot = new Plot(host, curve);
  const drawAbout = whenOther((found) => fill(about, facts(Object.entries(found).filter(([key, value]) => plain(value) && !LEFT_OUT.includes(key)).map(([key, value]) => [words(key), shown(value)]))));
  const drawFilm = whenOther((found) => fill(films, pictures(base, found)));
  const drawCurve = whenOther((found) => plot.show(found));
  const look = coalesced(async () => {
    if (document.hidden) return;
    try {
      const found = await get(base);
      drawAbout(found);
      drawFilm([found.film, found.strip, found.filmed_before]);
      complain(late, found.outdated);
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

const LEFT_OUT = ["name", "study", "run", "film", "strip", "outdated"];
const WORDS = {
  wall_s: "seconds it took",
  return_search: "expected return of the search distribution",
  return_mean_policy: "expected return of the mean policy",
};

function words(key) {
  if (WORDS[key]) return WORDS[key];
  return key.replaceAll("_", " ");
}

function plain(value) {
  return (["string", "number", "boolean"].includes(typeof value) && value !== "") || typeof value?.mean === "number";
}

function shown(value) {
  if (typeof value === "object") return `${measured(value.mean, value.stderr)} (${plural(value.episodes, "episode")})`;
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

/** A picture or film that the server gives to those alone who have a session. */
function fetched(node, path) {
  file(path, "*/*").then((found) => (node.src = URL.createObjectURL(found)), () => {});
  return node;
}

/** Its film and the strip of that; each says so where it shows an older policy than the newest. */
function pictures(base, [film, strip, before]) {
  const of = (name) => (before.includes(name) ? "An episode of a mean policy that is not the newest: recoup render films that." : "An episode of the mean policy.");
  return [
    film && h("figure", {}, fetched(h("video", { controls: true, muted: true, playsInline: true }), `${base}/film`), h("figcaption", {}, of("policy.mp4"))),
    strip && h("figure", {}, fetched(h("img", { alt: "Pictures of an episode, in a row" }), `${base}/strip`), h("figcaption", {}, of("strip.png"))),
  ];
}

/** What uPlot draws of a curve: the mean where it was measured, and one standard error around it. */
export function curve(found) {
  const { accent, band } = colours();
  const at = found.mean.map((value, i) => (value === null ? -1 : i)).filter((i) => i >= 0);
  const mean = at.map((i) => found.mean[i]);
  const edge = (sign) => at.map((i) => (found.stderr?.[i] === null ? null : found.mean[i] + sign * found.stderr[i]));
  const ends = mean.length ? `, ${fromTo(mean[0], mean.at(-1))}` : "";
  return {
    said: `A curve of ${plural(mean.length, "point")}${ends}.`,
    none: "Nothing was measured yet.",
    data: [at.map((i) => found.episodes[i]), edge(1), edge(-1), mean],
    series: [{}, { stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } }, { stroke: accent, width: 2 }],
    bands: [{ series: [1, 2], fill: band }],
    names: ["episodes", null, null, "return"],
  };
}
