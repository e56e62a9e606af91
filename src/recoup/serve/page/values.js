/** Fields for a value of each parameter. */

import { complaint, complain, field, h, named } from "./dom.js";
import { exact, number } from "./numbers.js";

const MANY = 12; // parameters from which on a filter helps

/** The values of the mean policy. */
export function values(study) {
  return { ...study.mean };
}

/** A parameter's name, with its unit. */
export function titled(parameter) {
  return [named(parameter.name), parameter.unit ? h("span.unit", {}, " ", named(parameter.unit)) : null];
}

/** A cell with a value and every digit of it, in one line: it is typed into a robot. */
export function valued(value) {
  return h(typeof value === "number" ? "td.number.digits" : "td.number", {}, named(exact(value)));
}

/** A table of `[name, cell, class]`: a value stands under its name where there is no room beside it. */
export function tabled(rows) {
  const row = ([name, cell, kind]) => {
    cell.setAttribute("role", "cell"); // what is laid out otherwise is no table any more to some screen readers
    return h("tr", { class: kind, role: "row" }, h("th", { scope: "row", role: "rowheader" }, name), cell);
  };
  return h("table.params", { role: "table" }, h("tbody", { role: "rowgroup" }, rows.map(row)));
}

/** What a parameter may be, in words. */
export function range({ low, high, scale }) {
  if (typeof low !== "number" || typeof high !== "number") return null;
  return `${exact(low)} to ${exact(high)}${scale === "log" ? ", logarithmic" : scale === "int" ? ", whole" : ""}`;
}

/** A field in which one parameter is typed or chosen. */
export function typed(parameter, value) {
  if (parameter.choices) {
    const options = parameter.choices.map((word) => h("option", { value: word, selected: word === value }, word));
    return h("select", { dir: "auto" }, options);
  }
  const input = h("input", { type: "text", inputmode: "text", autocomplete: "off" });
  input.value = exact(value);
  return input;
}

/** What such a field holds; an Error with a sentence where it is none. */
export function read(parameter, input, focus = true) {
  if (parameter.choices) return input.value;
  try {
    return number(input.value);
  } catch (wrong) {
    input.setAttribute("aria-invalid", "true");
    if (focus) input.focus();
    throw new Error(`${parameter.name}: ${wrong.message}`);
  }
}

/** All of them, with a filter where they are many. */
export class Values {
  constructor(study, start) {
    this.rows = study.parameters.map((parameter) => {
      const input = typed(parameter, start[parameter.name]);
      input.addEventListener("input", () => input.removeAttribute("aria-invalid"));
      return { parameter, input, node: field(titled(parameter), input, range(parameter)) };
    });
    const fields = h("div.values", {}, this.rows.map((row) => row.node));
    this.node = h("div", {}, this.rows.length > MANY ? filter(this.rows) : null, fields);
  }

  /** The values by name. */
  read() {
    return Object.fromEntries(this.rows.map(({ parameter, input }) => [parameter.name, read(parameter, input)]));
  }
}

/** A field that hides the rows whose parameter has another name. */
export function filter(rows) {
  const input = h("input", { type: "search", autocomplete: "off" });
  const left = complaint();
  left.setAttribute("role", "status");
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    for (const { parameter, node } of rows) {
      node.hidden = !parameter.name.toLowerCase().includes(wanted);
      shown += !node.hidden;
    }
    complain(left, shown ? "" : "No parameter has that in its name.");
  });
  return h("div", {}, field(`Find one of ${rows.length} parameters`, input), left);
}
