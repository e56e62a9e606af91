/** Deploy: which values to keep, what they are worth, whether to go on; the report. */

import { ask, file } from "./api.js";
import { coalesced } from "./live.js";
import { button, complain, complaint, dialog, field, fill, h, named, once, say } from "./dom.js";
import { number, percent, short } from "./numbers.js";
import { titled, valued } from "./values.js";

const BETWEEN = "best between (95\u00a0%)";
const MEAN = "mean policy";

export function deploy(context) {
  const { study, base } = context;
  const verdict = h("p.verdict-line", {});
  const words = h("div", {}, h("p.soft", {}, "One moment."));
  const table = h("div", {});
  const matters = h("div", {});
  const budget = h("input", { type: "text", inputmode: "numeric", autocomplete: "off" });
  const worth = h("input", { type: "text", inputmode: "text", autocomplete: "off" });
  const wrong = complaint();
  const report = saving(`${base}/report`, `${study.name.slice(0, 100)}.html`);

  let given = { budget: null, worth: null }; // what is half typed is not asked yet

  const update = coalesced(async () => {
    try {
      const found = await ask(`${base}/recommend`, given);
      complain(wrong);
      draw(found);
    } catch (problem) {
      if (words.querySelector(".soft")) fill(words);
      complain(wrong, problem.message);
    }
  });

  function draw(found) {
    fill(verdict, found.verdict ? h("span.badge.large", {}, found.verdict) : null);
    fill(words, (found.sentences ?? [found.words]).map((text) => h("p", {}, text)));
    fill(table, values(context, found));
    fill(matters, mattering(found.matters));
  }

  const asked = (event) => {
    event.preventDefault();
    try {
      given = { budget: whole(budget), worth: typed(worth) };
    } catch (problem) {
      return complain(wrong, problem.message);
    }
    return update();
  };
  const node = h(
    "div", {}, h("h1", {}, "What to deploy"), verdict, words,
    h(
      "form.card", { onsubmit: asked, "aria-label": "Ask further" },
      h(
        "div.row", {},
        field("Trials that are left", budget, "How many to search with, and how many to try the mean with."),
        field(`A difference in ${study.noun} that matters`, worth, "Less gain than a tenth of it is not worth a batch."),
        h("button", { type: "submit" }, "Say it again"),
      ),
      wrong,
    ),
    h("h2", {}, "The values to deploy"), table, matters,
    h("h2", {}, "Keep it"), h("p.soft", {}, "One file that needs no network: the values, the pictures, every sentence."), report,
  );
  return { node, update };
}

function typed(input) {
  return input.value.trim() ? number(input.value) : null;
}

function whole(input) {
  const value = typed(input);
  if (value !== null && !Number.isInteger(value)) throw new Error("How many trials are left is a whole number.");
  return value;
}

/** Fetches a file and has it kept: a server that is away is said. */
function saving(path, name) {
  const wrong = complaint();
  const save = () => once(node, wrong, async () => {
    const link = h("a", { href: URL.createObjectURL(await file(path, "text/html")), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  const node = h("div", {}, h("p", {}, button("Save the report", save, "main")), wrong);
  return node;
}

function values(context, found) {
  const { parameters } = context.study;
  const mean = parameters.some((one) => found.mean_policy?.[one.name] !== found.params[one.name]) ? found.mean_policy : null;
  const row = (label, name, value) => {
    const beside = mean ? [valued(mean[name] ?? value)] : [];
    beside.forEach((cell) => cell.setAttribute("data-head", MEAN));
    const cells = [valued(value), ...beside, h("td.number", { "data-head": BETWEEN }, best(found.best_between?.[name]))];
    cells.forEach((cell) => cell.setAttribute("role", "cell")); // on a phone it is laid out otherwise
    return h("tr", { role: "row" }, h("th", { scope: "row", role: "rowheader" }, label), cells);
  };
  const rows = parameters.map((one) => row(titled(one), one.name, found.params[one.name]));
  const frozen = Object.entries(found.frozen ?? {}).map(([name, value]) => row([named(name), " (kept fixed)"], name, value));
  const heads = ["parameter", "value", ...(mean ? [MEAN] : []), BETWEEN].map((text, i) => h("th", { scope: "col", role: "columnheader", class: i ? "number" : null }, text));
  const table = h("table.deployed", { role: "table" }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)), h("tbody", { role: "rowgroup" }, rows, frozen));
  return [
    h("div.scroll", { tabIndex: 0, role: "region", "aria-label": "Values to deploy" }, table),
    h("p", {}, button("Copy as JSON", () => copy({ ...found.params, ...found.frozen }))),
  ];
}

/** Where a parameter is best, or how surely each choice is. */
function best(found) {
  if (!found) return "";
  if (!Array.isArray(found)) return Object.entries(found).map(([word, share]) => h("div", {}, named(word), ` ${percent(share)}`));
  const [low, high] = found;
  if (low === null && high === null) return "not known";
  if (low === null) return `up to ${short(high, 4)}`;
  return high === null ? `from ${short(low, 4)}` : `${short(low, 4)} to ${short(high, 4)}`;
}

async function copy(params) {
  const text = JSON.stringify(params, null, 2);
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    marked(text);
  }
}

/** Over plain HTTP a browser lets no page copy: then the person does, from a field that is marked. */
function marked(text) {
  const area = h("textarea", { readOnly: true, rows: Math.min(text.split("\n").length, 16) });
  area.value = text;
  dialog("Copy it from here", field("The values", area, "This browser lets no page copy: they are marked, copy them yourself."));
  area.focus();
  area.select();
}

function mattering(rows) {
  const seen = (rows ?? []).filter((row) => row.seen);
  if (!seen.length) return null;
  const line = (row) => h("li", {}, row.names.map((name, i) => [i ? " with " : "", named(name)]), ` ${explained(row)}`);
  return [h("h2", {}, "What matters"), h("p.soft", {}, "The share of the differences between results that each explains, with its standard error."), h("ul", {}, seen.sort((a, b) => b.share - a.share).slice(0, 12).map(line))];
}

/** As `explains` says it: whole per cent. */
function explained({ share, stderr }) {
  if (stderr === null || stderr >= 12 ** -0.5) return "not known";
  return `${Math.round(100 * share)}\u00a0% ± ${Math.round(100 * Math.max(stderr, 0.01))}\u00a0%`;
}
