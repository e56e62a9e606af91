/** Work: what waits, as cards; asking for more; what was told just now. */

import { ask as asked, get, insist, line } from "./api.js";
import { Card } from "./card.js";
import { drafted, forget, lost } from "./drafts.js";
import { button, complain, complaint, dialog, field, fill, h, named, once, say, until } from "./dom.js";
import { coalesced } from "./live.js";
import { plural, short } from "./numbers.js";
import { KEPT, reading, receive, receiptsOf, sending, Sending, sendingsOf, settle } from "./sendings.js";
import { amendable } from "./trial.js";
import { values, Values } from "./values.js";

const MINUTE = 60000;
const AT_ONCE = 60; // cards that are drawn; the others on request

export function work(context) {
  const cards = new Map();
  const list = h("div.cards", {});
  const told = h("ol.told", {});
  const slips = h("ol.told", {});
  const none = h("p.soft", { hidden: true }, "Nothing waits for a result", context.mayWrite ? ": ask for trials above." : ".");
  const more = h("p", {});
  const queue = h("div", {});
  let waits = null; // the trials that wait, by the last look
  let wanted = null; // the card to go to as soon as it is there
  const form = context.mayWrite ? asking(context, () => waits ?? [], (id) => (wanted = id)) : null;
  const node = h(
    "div", {},
    h("h1", {}, "Waiting for results"),
    form?.node ?? h("p.soft", {}, context.onlyRead),
    slips, none, list, more, queue,
    h("section", { "aria-label": "Told just now", "aria-live": "polite" }, told),
  );
  let room = AT_ONCE;
  let ended = false;
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
      if (!ended) draw(found.trials.filter((trial) => looks > (heardAt.get(trial.id) ?? 0)));
    } catch (wrong) {
      if (wrong.status && wrong.status !== 401) say(wrong.message);
    }
  });

  function draw(trials) {
    waits = trials.map((trial) => trial.id);
    const now = new Map(trials.slice(0, room).map((trial) => [trial.id, trial]));
    for (const [id, card] of cards) {
      if (now.has(id)) card.update(now.get(id));
      else if (!card.leave()) drop(id);
    }
    for (const [id, trial] of now) if (!cards.has(id)) add(id, trial);
    outdated(context, (id) => waits.includes(id) || cards.has(id));
    nothing();
    const left = trials.length - room;
    fill(more, left > 0 && button(`Show ${Math.min(left, AT_ONCE)} more of ${left}`, () => ((room += AT_ONCE), draw(trials))));
    cards.get(wanted)?.node.scrollIntoView({ block: "nearest" });
    if (cards.has(wanted)) wanted = null;
  }

  /** That nothing waits is said once somebody has looked, and while that can be known. */
  function nothing() {
    none.hidden = waits === null || line.away || cards.size > 0;
  }

  function add(id, trial) {
    const card = new Card(context, trial, () => drop(id));
    cards.set(id, card);
    list.append(card.node);
  }

  function drop(id) {
    const card = cards.get(id);
    const next = (card.free() || card.node.contains(document.activeElement)) && (card.node.nextElementSibling ?? card.node.previousElementSibling);
    card.node.remove();
    cards.delete(id);
    if (next) next.querySelector("input")?.focus({ preventScroll: true });
    nothing();
  }

  function heard(row) {
    heardAt.set(row.id, looks);
    if (cards.has(row.id)) drop(row.id);
    const shown = show(row);
    if (row.answer?.slip) shown.scrollIntoView({ block: "nearest" });
    context.refresh();
  }

  function show(row) {
    const shown = receipt(context, row);
    (row.answer?.slip ? slips : told).prepend(shown);
    while (told.children.length > KEPT) told.lastChild.remove();
    return shown;
  }

  receiptsOf(context.base).forEach(show);
  for (const { trial } of sendingsOf(context.base)) add(trial.id, trial);
  const unread = reading(context.base, heard);
  const timer = setInterval(() => document.hidden || update(), MINUTE);
  line.addEventListener("change", nothing);
  const end = () => {
    ended = true;
    clearInterval(timer);
    line.removeEventListener("change", nothing);
    unread();
    form?.end();
    cards.forEach((card) => card.end());
  };
  return { node, update, end };
}

/** What is kept for trials that wait no more; one was on its way when the page was loaded anew. */
function outdated({ base }, waits) {
  for (const key of drafted(base)) {
    const id = Number(key.slice(base.length + 1));
    if (waits(id)) continue;
    const slip = lost(key) && "It waits no more, and was on its way when the page was loaded anew: see what was told.";
    forget(key);
    if (slip) receive(base, { id, answer: { slip }, words: `Trial ${id}` });
  }
}

/** Values in a line: `kp 3, kd 0.2`. */
function inWords(values) {
  if (Array.isArray(values)) return values.map((value) => short(value)).join(", ");
  return Object.entries(values).slice(0, 20).map(([name, value]) => `${name} ${short(value)}`).join(", ");
}

/** What was told, and whether it stands out. */
function receipt(context, row) {
  const { id, answer, words } = row;
  const put = context.mayWrite ? button("Put right\u2026", () => amendable(context, id), "quiet") : null;
  const right = (event) => {
    settle(context.base, row);
    event.target.closest("li").remove();
  };
  return h(
    "li", { class: answer?.slip ? "slip" : null },
    answer?.slip ? h("p", { role: "alert" }, answer.slip) : null,
    h("span", {}, words), put,
    answer?.slip ? button("It is right", right, "quiet") : null,
    answer?.later ? h("p", {}, "Another result of it was told before: that one counts, this one is kept beside it.") : null,
  );
}

/** The buttons that ask for trials; `waits()`: those that wait now; `go(id)` leads to a card. */
function asking(context, waits, go) {
  const { base } = context;
  const key = `${base}/ask`;
  const n = h("input", { type: "number", min: 1, max: 1000, step: 1, inputmode: "numeric" });
  n.value = "1";
  const lease = h(
    "select", {},
    [["until told", ""], ["1 hour", "3600"], ["8 hours", "28800"]].map(([label, value]) => h("option", { value }, label)),
  );
  const worker = h("input", { type: "text", maxLength: 100, autocomplete: "name" });
  worker.value = remembered();
  const wrong = complaint();
  const watcher = {
    waiting: (why) => complain(wrong, `${why.message} ${until(why)}`),
    ended({ answer, problem, refused, known }) {
      form.removeAttribute("aria-busy");
      complain(wrong, refused?.message);
      if (problem) return;
      const again = answer.trials?.find((trial) => known.includes(trial.id));
      if (again) go(again.id);
      context.refresh();
    },
  };
  /** It is on its way, from here or from the form of before. */
  const take = (on) => {
    complain(wrong);
    form.setAttribute("aria-busy", "true");
    on.watch(watcher);
  };
  const send = (path, body, words) => {
    if (!sending(key)) take(new Sending(key, `${base}/${path}`, body, { words, known: waits(), then: answered }));
  };
  const ask = (body, words) => {
    remember(worker.value);
    const common = { lease: lease.value ? Number(lease.value) : null, worker: worker.value.trim() || null };
    send("ask", { ...common, ...body }, words);
  };
  const several = (event) => {
    event.preventDefault();
    const many = Number(n.value);
    if (!Number.isInteger(many) || many < 1) return complain(wrong, "Ask for a whole number of trials, at least one.");
    return ask({ n: many }, askedFor);
  };
  const pause = () => send("pause", {}, () => "Paused: nobody is given trials until it is resumed.");
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
  const on = sending(key);
  if (on) take(on);
  return { node: form, end: () => sending(key)?.leave(watcher) };
}

/** The end of such a request, whatever is shown by then. */
function answered({ answer, problem, refused, words, known, watcher }) {
  if (!problem) say(words(answer, known));
  else if (refused && !watcher) say(refused.message);
}

/** How many trials are new, and which were given before, to somebody whose lease has run out. */
function askedFor({ trials }, known) {
  const again = trials.filter((trial) => known.includes(trial.id)).map((trial) => trial.id);
  const fresh = trials.length - again.length;
  const old = again.length === 1 ? `Trial ${again[0]} again: its lease had run out.` : `Trials ${again.join(", ")} again: their leases had run out.`;
  return [fresh > 0 && `${plural(fresh, "trial")} asked for.`, again.length > 0 && old].filter(Boolean).join(" ");
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
    node.close();
    say(words); // under an open window nobody would hear it
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
