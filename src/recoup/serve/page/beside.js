/** Fields for what is told beside a return: numbers that have limits, and what was known before a trial. */

import { field, h, named } from "./dom.js";
import { exact, number } from "./numbers.js";

const LIMIT = /^(.*?)(<=|>=|<|>)(.*)$/;
const SIDES = { "<": "below", "<=": "at or below", ">": "above", ">=": "at or above" };

/** The limits of a number in words: "To stay above 0.1 and below 50." */
function kept(name, limits) {
  const sides = limits.map((text) => LIMIT.exec(text)).filter((found) => found?.[1] === name).map(([, , side, bound]) => `${SIDES[side]} ${bound}`).sort();
  return sides.length ? `To stay ${sides.join(" and ")}.` : "A number beside it.";
}

/** One of them: a field, and a box where it may be one that is not known. */
class One {
  constructor(name, where, note, boxed) {
    Object.assign(this, { name, where, key: `${where} ${name}` });
    this.input = h("input", { type: "text", inputmode: "text", autocomplete: "off" });
    this.box = boxed ? h("input", { type: "checkbox", "aria-label": `${name} is not known` }) : null;
    this.box?.addEventListener("change", () => this.turned());
    this.node = field(named(name), this.input, note);
    if (boxed) this.node.append(h("label.radio", {}, this.box, "not known"));
  }

  turned() {
    this.input.disabled = this.box.checked;
    this.input.removeAttribute("aria-invalid");
  }

  /** What is typed, as it is kept until it is sent. */
  get typed() {
    return this.box?.checked ? "not known" : this.input.value;
  }

  set typed(text) {
    const unknown = this.box !== null && text === "not known";
    if (this.box) this.box.checked = unknown;
    this.input.value = unknown ? "" : text;
    if (this.box) this.turned();
  }

  /** The number; null where it is not known or empty. */
  read() {
    const text = this.typed.trim();
    if (!text || text === "not known") return null;
    try {
      return number(text);
    } catch (wrong) {
      throw this.wrong(`${this.name}: ${wrong.message}`);
    }
  }

  wrong(text) {
    return Object.assign(new Error(text), { input: this.input });
  }
}

export class Beside {
  /** Those of a study, and those that a trial was told besides. */
  constructor(study, trial = {}) {
    const { limits = [], limit_names: limited = [], context_names: known = [] } = study;
    const all = (names, told) => [...new Set([...names, ...Object.keys(told ?? {})])];
    this.limited = limited;
    this.names = JSON.stringify([limits, limited, known]);
    this.rows = [
      ...all(limited, trial.also).map((name) => new One(name, "also", kept(name, limits), limited.includes(name))),
      ...all(known, trial.context).map((name) => new One(name, "context", "Known before the trial.", false)),
    ];
    this.node = h("div", {}, this.rows.map((one) => one.node));
  }

  /** Whether a study has the same as when these were made. */
  fits({ limits = [], limit_names: limited = [], context_names: known = [] }) {
    return this.names === JSON.stringify([limits, limited, known]);
  }

  get typed() {
    return Object.fromEntries(this.rows.map((one) => [one.key, one.typed]));
  }

  set typed(values) {
    for (const one of this.rows) one.typed = values[one.key] ?? "";
  }

  /** What stood beside a result before. */
  start(trial) {
    const text = (one) => {
      const value = trial[one.where]?.[one.name];
      return value === undefined || value === null ? (one.box && trial.status === "ok" ? "not known" : "") : exact(value);
    };
    this.typed = Object.fromEntries(this.rows.map((one) => [one.key, text(one)]));
    this.before = this.typed;
  }

  /** As a new result has it: every number that has a limit, and what was known, all of it or none. */
  read() {
    const missing = this.rows.find((one) => one.box && !one.typed.trim());
    if (missing) throw missing.wrong(`${missing.name}: type the number, or say that it is not known.`);
    const known = this.rows.filter((one) => one.where === "context");
    const empty = known.find((one) => !one.typed.trim());
    if (empty && known.some((one) => one.typed.trim())) throw empty.wrong(`${empty.name}: fill in all that was known before the trial, or none of it.`);
    return this.body(this.rows.filter((one) => one.typed.trim()));
  }

  /** As an amendment has it: what is another than before; what was emptied is not known. */
  changed() {
    const emptied = this.rows.find((one) => one.box && !one.typed.trim() && this.before[one.key]);
    if (emptied) throw emptied.wrong(`${emptied.name}: type the number, or say that it is not known.`);
    return this.body(this.rows.filter((one) => one.typed !== this.before[one.key]));
  }

  body(rows) {
    const found = {};
    for (const one of rows) found[one.where] = { ...found[one.where], [one.name]: one.read() };
    return found;
  }
}
