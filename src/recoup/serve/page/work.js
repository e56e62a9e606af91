/** Work: what waits, as cards; asking for more; what was told just now. */

import { ask as asked, get, insist } from "./api.js";
import { Card } from "./card.js";
import { button, complain, complaint, dialog, field, fill, h, named, once, say } from "./dom.js";
import { coalesced } from "./live.js";
import { plural, short } from "./numbers.js";
import { amendable } from "./trial.js";
import { values, Values } from "./values.js";

const MINUTE = 60000;
const KEPT = 8; // of what was told just now
const AT_ONCE = 60; // cards that are drawn; the others on request

export function work(context) {
  const cards = new Map();
  const list = h("div.cards", {});
  const told = h("ol.told", {});
  const slips = h("ol.told", {});
  const none = h("p.soft", {}, "Nothing waits for a result.");
  const more = h("p", {});
  const queue = h("div", {});
  const node = h(
    "div", {},
    h("h1", {}, "Waiting for results"),
    context.mayWrite ? asking(context) : h("p.soft", {}, context.onlyRead),
    slips, none, list, more, queue,
    h("section", { "aria-label": "Told just now", "aria-live": "polite" }, told),
  );
  let room = AT_ONCE;
  let looks = 0; // how often it was asked what waits
  const heardAt = new Map(); // trial -> after which look its result was told here

  function drawQueue() {
    const rows = context.study.enqueued ?? [];
    const line = (row) => h("li", {}, named(inWords(row.params ?? row.values ?? row.theta ?? row)), row.note ? h("span.soft", {}, ": ", named(row.note)) : null);
    fill(queue, rows.length > 0 && h("details", {}, h("summary", {}, `${plural(rows.length, "candidate")} in line for the next who asks`), h("ol", {}, rows.slice(0, 50).map(line))));
  }

  const update = coalesced(async () => {
    drawQueue();
    looks += 1;
    try {
      const found = await get(`${context.base}/waiting`);
      draw(found.trials.filter((trial) => looks > (heardAt.get(trial.id) ?? 0)));
    } catch (wrong) {
      if (wrong.status && wrong.status !== 401) say(wrong.message);
    }
  });

  function draw(trials) {
    const now = new Map(trials.slice(0, room).map((trial) => [trial.id, trial]));
    for (const [id, card] of cards) {
      if (now.has(id)) card.update(now.get(id));
      else if (!card.leave()) drop(id);
    }
    for (const [id, trial] of now) if (!cards.has(id)) add(id, trial);
    none.hidden = cards.size > 0;
    const left = trials.length - room;
    fill(more, left > 0 && button(`Show ${Math.min(left, AT_ONCE)} more of ${left}`, () => ((room += AT_ONCE), draw(trials))));
  }

  function add(id, trial) {
    const card = new Card(context, trial, (answer, words) => heard(id, answer, words), () => drop(id));
    cards.set(id, card);
    list.append(card.node);
  }

  function drop(id) {
    const card = cards.get(id);
    const next = (card.free() || card.node.contains(document.activeElement)) && (card.node.nextElementSibling ?? card.node.previousElementSibling);
    card.node.remove();
    cards.delete(id);
    if (next) next.querySelector("input")?.focus({ preventScroll: true });
    none.hidden = cards.size > 0;
  }

  function heard(id, answer, words) {
    heardAt.set(id, looks);
    drop(id);
    const row = receipt(context, id, answer, words);
    if (answer?.slip) {
      slips.prepend(row);
      row.scrollIntoView({ block: "nearest" });
    } else told.prepend(row);
    while (told.children.length > KEPT) told.lastChild.remove();
    context.refresh();
  }

  const timer = setInterval(() => document.hidden || update(), MINUTE);
  return { node, update, end: () => clearInterval(timer) };
}

/** Values in a line: `kp 3, kd 0.2`. */
function inWords(values) {
  if (Array.isArray(values)) return values.map((value) => short(value)).join(", ");
  return Object.entries(values).slice(0, 20).map(([name, value]) => `${name} ${short(value)}`).join(", ");
}

/** What was told, and whether it stands out. */
function receipt(context, id, answer, words) {
  const put = button("Put right\u2026", () => amendable(context, id), "quiet");
  return h(
    "li", { class: answer?.slip ? "slip" : null },
    answer?.slip ? h("p", { role: "alert" }, answer.slip) : null,
    h("span", {}, `Trial ${id}: ${words}.`), put,
    answer?.slip ? button("It is right", (event) => event.target.closest("li").remove(), "quiet") : null,
    answer?.later ? h("p", {}, "Another result of it was told before: that one counts, this one is kept beside it.") : null,
  );
}

/** The buttons that ask for trials. */
function asking(context) {
  const { base } = context;
  const n = h("input", { type: "number", min: 1, max: 1000, step: 1, inputmode: "numeric" });
  n.value = "1";
  const lease = h(
    "select", {},
    [["until told", ""], ["1 hour", "3600"], ["8 hours", "28800"]].map(([label, value]) => h("option", { value }, label)),
  );
  const worker = h("input", { type: "text", maxLength: 100, autocomplete: "name" });
  worker.value = remembered();
  const wrong = complaint();
  const ask = (body, done) => once(form, wrong, async (how) => {
    remember(worker.value);
    const common = { lease: lease.value ? Number(lease.value) : null, worker: worker.value.trim() || null };
    const found = await insist(`${base}/ask`, { ...common, ...body }, how);
    say(done(found.trials.length));
    context.refresh();
  });
  const several = (event) => {
    event.preventDefault();
    const many = Number(n.value);
    if (!Number.isInteger(many) || many < 1) return complain(wrong, "Ask for a whole number of trials, at least one.");
    return ask({ n: many }, (got) => `${plural(got, "trial")} asked for.`);
  };
  const pause = () => once(form, wrong, async (how) => {
    await insist(`${base}/pause`, {}, how);
    say("Paused: nobody is given trials until it is resumed.");
    context.refresh();
  });
  const mean = () => ask({ n: 1, at: "mean" }, () => "One trial of the mean policy asked for.");
  const form = h(
    "form.card.asking", { onsubmit: several, "aria-label": "Ask for trials" },
    h(
      "div.row", {},
      field("How many", n), h("button.main", { type: "submit" }, "Ask for trials"),
      button("Try the mean", mean), button("Try my own\u2026", () => own(context)), button("Pause", pause),
    ),
    wrong,
    h("details", {}, h("summary", {}, "For whom, and for how long"), h("div.row", {}, field("Name", worker, "It stands on the card."), field("Lent for", lease, "Then others may be given them."))),
  );
  return form;
}

/** A window for values of one's own: now, or in line for the next who asks. */
function own(context) {
  const { base } = context;
  const fields = new Values(context.study, values(context.study));
  const note = h("input", { type: "text", maxLength: 500 });
  const wrong = complaint();
  const predicted = h("p.soft", { role: "status" });
  const sent = (path, body, words) => () => once(node, wrong, async (how) => {
    await insist(`${base}/${path}`, body(fields.read()), how);
    say(words);
    node.close();
    context.refresh();
  });
  const predict = () => once(node, wrong, async ({ signal }) => {
    predicted.textContent = "";
    const found = await asked(`${base}/predict`, { params: fields.read() }, signal);
    predicted.textContent = found.words ?? found.sentence ?? "";
  });
  const line = (params) => ({ params, note: note.value.trim() || null });
  const now = (params) => ({ n: 1, lease: null, at: params });
  const node = dialog(
    "Values of my own", fields.node, field("Note", note), predicted, wrong,
    h(
      "div.row", {},
      button("Ask for it now", sent("ask", now, "Asked for: it waits as a card."), "main"),
      button("Put it in line", sent("enqueue", line, "In line: the next who asks is given it.")),
      button("What would it earn?", predict),
    ),
  );
}

function remembered() {
  try {
    return localStorage.getItem("recoup-worker") ?? "";
  } catch {
    return "";
  }
}

function remember(text) {
  try {
    localStorage.setItem("recoup-worker", text.trim());
  } catch {
    // a browser may keep nothing
  }
}
