/** A trial by itself: what was tried, what came of it, a note, and putting it right. */

import { get, insist } from "./api.js";
import { Beside } from "./beside.js";
import { button, complaint, dialog, facts, field, fill, fresh, h, named, once, say } from "./dom.js";
import { exact, numbers, when } from "./numbers.js";
import { receive } from "./sendings.js";
import { tabled, titled, valued } from "./values.js";

/** The trial of an id, in a window of its own. */
export async function amendable(context, id) {
  const node = dialog(`Trial ${id}`, h("p.soft", {}, "One moment."));
  const body = node.lastChild;
  try {
    const { trials } = await get(`${context.base}/trials?after=${id - 1}&limit=1`);
    const trial = trials.find((one) => one.id === id);
    if (!trial) throw new Error(`There is no trial ${id}.`);
    body.replaceWith(...shown(context, trial, node));
  } catch (wrong) {
    fill(body, wrong.message);
  }
}

function shown(context, trial, node) {
  const { parameters, noun } = context.study;
  const came = [
    ["status", trial.status],
    [noun || "return", trial.value === null ? null : exact(trial.value)],
    ["standard error", trial.stderr === null ? null : `${exact(trial.stderr)} of ${trial.episodes} episodes`],
    ["failed", trial.failed],
    ["seed", exact(trial.seed)],
    ["asked for", when(trial.asked_at)],
    ["told", when(trial.told_at)],
    ["worker", trial.worker],
    ["note", [trial.note].flat().filter(Boolean).join("; ")],
    ...Object.entries(trial.also ?? {}).map(([name, value]) => [name, exact(value)]),
    ...Object.entries(trial.context ?? {}).map(([name, value]) => [[named(name), ", known before"], exact(value)]),
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
  const rows = parameters.map((one) => [titled(one), valued(trial.params[one.name])]);
  return [
    facts(came.map(([name, value]) => [Array.isArray(name) ? name : named(name), named(value)])),
    h("details", { open: rows.length <= 12 }, h("summary", {}, "What was tried"), tabled(rows)),
    context.mayWrite ? writing(context, trial, node) : null,
  ].filter(Boolean);
}

function writing(context, trial, node) {
  const told = trial.status === "ok" || trial.status === "failed";
  const form = told ? amending(context, trial, node) : trial.status === "cancelled" ? telling(context, trial, node) : null;
  return h("div", {}, form, noting(context, trial));
}

function noting(context, trial) {
  const input = h("input", { type: "text", maxLength: 1000, autocomplete: "off" });
  const wrong = complaint();
  const done = h("p.soft", { role: "status" });
  const note = (event) => {
    event.preventDefault();
    done.textContent = "";
    return once(form, wrong, async (how) => {
      if (!input.value.trim()) throw new Error("Say in a few words what is to be written down.");
      await insist(`${context.base}/note`, { text: input.value, trial: trial.id }, how);
      input.value = "";
      done.textContent = "Written down.";
    });
  };
  const form = h("form", { onsubmit: note }, h("div.row.grow", {}, field("Write something down about it", input), h("button", { type: "submit" }, "Write down")), wrong, done);
  return form;
}

/** Fields for what came of a trial after all: a number and what stands beside it, or words. */
class Came {
  /** `ways`: `[way, label]` to choose between. */
  constructor(context, trial, ways, label) {
    Object.assign(this, { trial });
    const name = fresh("way");
    this.radios = ways.map(([way, text]) => {
      const input = h("input", { type: "radio", name, value: way });
      input.checked = way === "return";
      return h("label.radio", {}, input, text);
    });
    this.value = h("input.large", { type: "text", inputmode: "text", autocomplete: "off" });
    this.reason = h("input", { type: "text", maxLength: 1000, autocomplete: "off" });
    this.beside = new Beside(context.study, trial);
    this.beside.start(trial);
    this.number = h("div", {}, field(label, this.value, `Of several episodes: all of them, with spaces between.${trial.status === "ok" ? " Left empty, it stays as it is." : ""}`), this.beside.node);
    this.words = field("What happened", this.reason);
    this.node = h("div", {}, h("fieldset.plain", { onchange: () => this.turned() }, h("legend.hidden", {}, "What it should be"), h("div.row", {}, this.radios)), this.number, this.words);
    this.turned();
  }

  get way() {
    return this.radios.map((label) => label.firstChild).find((input) => input.checked).value;
  }

  turned() {
    this.number.hidden = this.way !== "return";
    this.words.hidden = this.way === "return";
  }

  /** As the server takes it; an Error with a sentence where it is not whole. */
  read() {
    if (this.way === "return") return this.numbers();
    if (!this.reason.value.trim()) throw new Error("Say in a few words what happened.");
    return { [this.way]: this.reason.value.trim() };
  }

  /** What is put right may be a number beside a return alone. */
  numbers() {
    const before = this.trial.status === "ok";
    const beside = before ? this.beside.changed() : this.beside.read();
    if (before && !this.value.value.trim() && Object.keys(beside).length) return beside;
    const found = numbers(this.value.value);
    return { ...(found.length === 1 ? { return: found[0] } : { returns: found }), ...beside };
  }
}

const TOLD = [
  ["return", "A number came of it"],
  ["failed", "It failed"],
];

/** A trial that was to be tried no more was tried all the same: its result counts. */
function telling(context, trial, node) {
  if (context.study.space === "actions") return null; // a program tells what came of it
  const came = new Came(context, trial, TOLD, "What came of it");
  const wrong = complaint();
  const tell = (event) => {
    event.preventDefault();
    return once(form, wrong, async (how) => {
      const answer = await insist(`${context.base}/trials/${trial.id}/tell`, came.read(), how);
      const words = `Trial ${trial.id} was told after all.`;
      changed(context, node, [words, answer.slip].filter(Boolean).join(" "));
      receive(context.base, { id: trial.id, answer, words });
    });
  };
  const form = h(
    "form", { onsubmit: tell }, h("h3", {}, "Tell its result after all"),
    h("p.soft", {}, "It was taken back. If it was tried all the same, its result counts."), came.node, wrong,
    h("button", { type: "submit" }, "Tell it after all"),
  );
  return form;
}

/** Something about a trial is another now. */
function changed(context, node, words) {
  context.putRight = (context.putRight ?? 0) + 1;
  node.close();
  say(words); // under an open window nobody would hear it
  context.refresh();
}

const WAYS = [
  ["return", "Another number"],
  ["failed", "It failed"],
  ["drop", "As if it had never been told"],
];

/** First what would change, then the change. */
function amending(context, trial, node) {
  const came = new Came(context, trial, WAYS, "The right number");
  const why = h("input", { type: "text", maxLength: 1000, autocomplete: "off" });
  const wrong = complaint();
  const changes = h("div", { role: "status" });
  const given = () => ({ ...came.read(), why: why.value.trim() || null });
  const post = (body, how) => insist(`${context.base}/trials/${trial.id}/amend`, body, how);
  const look = (event) => {
    event.preventDefault();
    fill(changes);
    return once(form, wrong, async (how) => {
      const body = given();
      const before = JSON.stringify(body);
      const found = await post({ ...body, dry_run: true }, how);
      if (JSON.stringify(given()) !== before) return; // it was changed meanwhile
      const go = button("Change it", () => done(body), "main");
      fill(changes, h("h3", {}, "This would change"), h("ul", {}, found.changes.map((text) => h("li", {}, text))), h("div.row", {}, go, button("Leave it as it is", () => node.close())));
      go.focus();
    });
  };
  const done = (body) => once(form, wrong, async (how) => {
    await post({ ...body, dry_run: false }, how);
    changed(context, node, `Trial ${trial.id} was put right.`);
  });
  const form = h(
    "form", { onsubmit: look, oninput: () => fill(changes), onchange: () => fill(changes) },
    h("h3", {}, "Put it right"),
    came.node, field("Why it is changed", why, "It is kept with the change."), wrong,
    h("button", { type: "submit" }, "What would change?"), changes,
  );
  return form;
}
