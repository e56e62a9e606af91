/** All studies and runs that are served. */

import { get } from "./api.js";
import { fill, h, named } from "./dom.js";
import { plural } from "./numbers.js";

const EVERY = 5000;

export function overview({ service, top, main }) {
  fill(top, h("div.bar", {}, h("strong.brand", {}, "Recoup"), h("span.soft", {}, service.version)));
  document.title = "Recoup";
  let ended = false;
  const look = async () => {
    if (document.hidden) return;
    try {
      const found = await get("/v1");
      if (!ended) draw(main, found);
    } catch {
      // the banner says so
    }
  };
  draw(main, service);
  const timer = setInterval(look, EVERY);
  return { name: null, again: look, end: () => ((ended = true), clearInterval(timer)) };
}

let last = "";

/** Draws only what is another, so that the focus stays where it is. */
function draw(main, service) {
  const now = JSON.stringify(service);
  if (now === last && main.querySelector(".overview")) return;
  last = now;
  const { studies, runs } = service;
  fill(
    main,
    h(
      "div.overview", {},
      h("h1", {}, "What is served here"),
      !service.may_write && h("p.soft", {}, onlyReads(service)),
      h("h2", {}, "Studies"),
      studies.length ? h("ul.lines", {}, studies.map(studyLine)) : h("p.soft", {}, "No study."),
      runs.length > 0 && [h("h2", {}, "Runs"), runs.length > 1 && h("p", {}, h("a", { href: "#/runs" }, "Their curves side by side")), h("ul.lines", {}, runs.map(runLine))],
    ),
  );
}

function studyLine(study) {
  const head = h("a.line-head", { href: `#/study/${encodeURIComponent(study.name)}/work` }, named(study.title || study.name));
  const rest = study.error ? h("p.wrong", {}, study.error) : h("p.soft", {}, counted(study.counts));
  return h("li.card", {}, head, study.title ? h("p.soft", {}, named(study.name)) : null, rest);
}

function runLine(run) {
  const head = h("a.line-head", { href: `#/run/${encodeURIComponent(run.name)}` }, named(run.title || run.name));
  return h("li.card", {}, head, run.error ? h("p.wrong", {}, run.error) : h("p.soft", {}, counted(run.counts)));
}

/** Why nothing can be written, whatever the study. */
export function onlyReads({ read_only }) {
  return `${read_only ? "This server only reads" : "This token may only read"}: nothing can be told or asked for.`;
}

/** How many trials there are, in words. */
export function counted(counts) {
  if (!counts) return "";
  const parts = [plural(counts.ok, "result")];
  if (counts.failed - counts.dropped > 0) parts.push(`${counts.failed - counts.dropped} failed`);
  if (counts.pending) parts.push(`${counts.pending} waiting`);
  if (counts.enqueued) parts.push(`${counts.enqueued} in line`);
  return parts.join(" \u00b7 ");
}
