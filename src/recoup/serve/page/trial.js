/** A trial by itself: what was tried, what came of it, a note, and putting it right. */

import { get, insist } from "./api.js";
import { button, complain, complaint, dialog, facts, field, fill, h, named, once, say } from "./dom.js";
import { exact, number, when } from "./numbers.js";
import { titled, valued } from "./values.js";

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
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
  const rows = parameters.map((one) =>
    h("tr", {}, h("th", { scope: "row" }, titled(one)), valued(trial.params[one.name])),
  );
  return [
    facts(came.map(([name, value]) => [named(name), named(value)])),
    h("details", { open: rows.length <= 12 }, h("summary", {}, "What was tried"), h("table.params", {}, h("tbody", {}, rows))),
    context.mayWrite ? writing(context, trial, node) : null,
  ].filter(Boolean);
}

function writing(context, trial, node) {
  const told = trial.status === "ok" || trial.status === "failed";
  return h("div", {}, told ? amending(context, trial, node) : null, noting(context, trial));
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

const WAYS = [
  ["return", "Another number"],
  ["failed", "It failed"],
  ["drop", "As if it had never been told"],
];

/** First what would change, then the change. */
function amending(context, trial, node) {
  const name = `way-${trial.id}`;
  const radios = WAYS.map(([way, label]) => {
    const input = h("input", { type: "radio", name, value: way });
    input.checked = way === "return";
    return h("label.radio", {}, input, label);
  });
  const value = h("input.large", { type: "text", inputmode: "text", autocomplete: "off" });
  const reason = h("input", { type: "text", maxLength: 1000, autocomplete: "off" });
  const why = h("input", { type: "text", maxLength: 1000, autocomplete: "off" });
  const wrong = complaint();
  const changes = h("div", { role: "status" });
  const number_ = field("The right number", value);
  const reason_ = field("What happened", reason);
  const way = () => radios.map((label) => label.firstChild).find((input) => input.checked).value;
  const turned = () => {
    number_.hidden = way() !== "return";
    reason_.hidden = way() === "return";
    fill(changes);
  };
  const given = () => {
    const common = { why: why.value.trim() || null };
    if (way() === "return") return { return: number(value.value), ...common };
    if (!reason.value.trim()) throw new Error("Say in a few words what happened.");
    return { [way()]: reason.value.trim(), ...common };
  };
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
    say(`Trial ${trial.id} was put right.`);
    context.putRight = (context.putRight ?? 0) + 1;
    node.close();
    context.refresh();
  });
  for (const input of [value, reason, why]) input.addEventListener("input", () => fill(changes));
  const form = h(
    "form", { onsubmit: look },
    h("h3", {}, "Put it right"),
    h("fieldset.plain", { onchange: turned }, h("legend.hidden", {}, "What it should be"), h("div.row", {}, radios)),
    number_, reason_, field("Why it is changed", why, "It is kept with the change."), wrong,
    h("button", { type: "submit" }, "What would change?"), changes,
  );
  turned();
  return form;
}
