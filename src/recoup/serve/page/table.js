/** All trials as a table: filtered, sorted, saved as CSV. */

import { file, get } from "./api.js";
import { button, field, fill, h, named, say } from "./dom.js";
import { count, exact, plural, short, when } from "./numbers.js";
import { amendable } from "./trial.js";
import { titled } from "./values.js";

const ROWS = 25; // on a page of the table
const AT_ONCE = 1000; // trials that are read at once, as many as the server gives
const EARLIER = 10000; // that are read on request
const FEW = 100; // that are read at once to see what became of those that waited
const COLUMNS = 6; // parameters that are shown unless a name is looked for
const STATUS = [["all", ""], ["with a result", "ok"], ["failed", "failed"], ["waiting", "pending"], ["cancelled", "cancelled"]];

const NUMBERS = (key) => key === "id" || key === "value" || key.startsWith("p:");

export function table(context) {
  const one = new Table(context);
  return { node: one.node, update: () => one.update() };
}

class Table {
  constructor(context) {
    Object.assign(this, { context, trials: [], sort: ["id", -1], page: 0, chosen: 0, start: 0, asked: Infinity }); // those after `asked` are kept
    this.status = h("select", { onchange: () => this.again() }, STATUS.map(([label, value]) => h("option", { value }, label)));
    this.text = h("input", { type: "search", autocomplete: "off", oninput: () => this.turn(0) });
    this.columns = h("input", { type: "search", autocomplete: "off", oninput: () => this.draw() });
    this.body = h("div.scroll", { tabIndex: 0, role: "region", "aria-label": "Trials" });
    this.pager = h("div.row.pager", {});
    this.saves = button("Save as CSV", () => this.save());
    this.read = h("p.soft", { role: "status" });
    const many = context.study.parameters.length > COLUMNS;
    this.node = h(
      "section", {}, h("h2", {}, "Trials"),
      h(
        "div.row", {}, field("Which", this.status), field("That say", this.text),
        many ? field("Parameters named", this.columns) : null, this.saves,
      ),
      this.read, this.body, this.pager,
    );
  }

  get total() {
    const { counts } = this.context.study;
    return counts.ok + counts.failed + counts.pending;
  }

  /** Failures, and what waits: all of them are read. Results are looked for among all trials. */
  get few() {
    return !["", "ok"].includes(this.status.value);
  }

  query(more, status = this.few ? this.status.value : "") {
    const query = new URLSearchParams({ ...more, ...(status ? { status } : {}) });
    return `${this.context.base}/trials?${query}`;
  }

  /** What is another once trials that were read may be others: an event of anybody's, or, of few, a count. */
  news() {
    const { events, putRight, study } = this.context;
    const waits = this.few && this.status.value !== "failed";
    return JSON.stringify([events, putRight, this.few && study.counts.failed, waits && study.counts]);
  }

  /** Trials by number, after one and up to another, as many pages as that takes. */
  async between(after, last) {
    const found = [];
    for (let next = after; next !== null && next < last; ) {
      const page = await get(this.query({ after: next, limit: AT_ONCE }));
      found.push(...page.trials.filter((trial) => trial.id <= last));
      next = page.next;
    }
    return found;
  }

  /** Those that waited when they were read, as they are now. */
  async waited() {
    const ids = this.trials.filter((trial) => trial.status === "pending").map((trial) => trial.id);
    const found = [];
    for (let next = ids[0]; next; ) {
      const { trials } = await get(this.query({ after: next - 1, limit: FEW }));
      found.push(...trials);
      const last = trials.at(-1)?.id ?? Infinity;
      next = ids.find((id) => id > last);
    }
    return found;
  }

  /** The newest trials, and earlier ones once they were asked for. Of those that were read, what may be another is read again. */
  async update() {
    await this.context.points?.catch(() => null); // they say whether there were events
    const start = this.few ? 0 : Math.min(this.asked, Math.max(0, this.total - AT_ONCE));
    const news = this.news();
    const stays = news === this.heard && this.trials.length > 0;
    const from = stays ? Math.max(start, this.trials.at(-1).id) : start;
    const { chosen } = this;
    const found = [...(stays ? await this.waited() : []), ...(await this.between(from, Infinity))];
    if (chosen !== this.chosen) return; // others are wanted meanwhile
    this.heard = news;
    this.start = Math.min(start, this.asked);
    this.keep(this.trials.filter((trial) => trial.id <= from), found);
  }

  /** Shows trials, `found` in the place of those of the same numbers, but for those that lie too far back. */
  keep(known, found) {
    const all = new Map([...known, ...found].map((trial) => [trial.id, trial]));
    this.trials = [...all.values()].filter((trial) => trial.id > this.start).sort((a, b) => a.id - b.id);
    this.draw();
  }

  again() {
    Object.assign(this, { trials: [], page: 0, asked: Infinity, chosen: this.chosen + 1 });
    return this.update().catch((wrong) => say(wrong.message));
  }

  async earlier() {
    const { chosen, start, asked } = this;
    try {
      this.asked = Math.max(0, start - EARLIER);
      const found = await this.between(this.asked, start);
      if (chosen !== this.chosen) return;
      this.start = Math.min(this.start, this.asked);
      this.keep(found, this.trials); // what was read meanwhile is newer
    } catch (wrong) {
      if (chosen === this.chosen) Object.assign(this, { asked, heard: undefined });
      say(wrong.message);
    }
  }

  /** What was typed under "That say". */
  get wanted() {
    return this.text.value.trim().toLowerCase();
  }

  /** All trials of a status; or, where a text is looked for, those that the table shows. */
  async csv() {
    if (!this.wanted) return file(this.query({}, this.status.value), "text/csv");
    const ids = new Set(this.rows().map((trial) => trial.id));
    const some = await file(this.query({ after: Math.min(...ids) - 1 }, this.status.value), "text/csv");
    const [head, ...rows] = records(await some.text());
    return new Blob([head, ...rows.filter((row) => ids.has(parseInt(row, 10)))], { type: some.type });
  }

  open(id) {
    looked(this.context, id, () => this.body.querySelector(`[aria-label="Trial ${id}"]`) ?? this.body);
  }

  async save() {
    try {
      const found = await this.csv();
      const link = h("a", { href: URL.createObjectURL(found), download: `${this.context.name.slice(0, 100)}.csv` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    } catch (wrong) {
      say(wrong.message);
    }
  }

  turn(page) {
    this.page = page;
    this.draw();
  }

  parameters() {
    const { parameters } = this.context.study;
    const wanted = this.columns.value.trim().toLowerCase();
    const some = wanted ? parameters.filter((one) => one.name.toLowerCase().includes(wanted)) : parameters;
    return some.slice(0, COLUMNS);
  }

  /** Those of the status that was chosen. */
  read_() {
    return this.status.value === "ok" ? this.trials.filter((trial) => trial.status === "ok") : this.trials;
  }

  rows() {
    const { wanted } = this;
    const says = (trial) => [trial.id, trial.failed, trial.note, trial.worker, trial.kind, exact(trial.value)].flat().some((x) => x !== null && x !== undefined && String(x).toLowerCase().includes(wanted));
    const found = this.read_().filter((trial) => !wanted || says(trial));
    const [key, sign] = this.sort;
    const of = (trial) => (key.startsWith("p:") ? trial.params[key.slice(2)] : trial[key]) ?? null;
    return found.sort((a, b) => sign * compared(of(a), of(b), sign));
  }

  /** Draws it anew; the focus stays on the button of the same name. */
  draw() {
    const held = document.activeElement;
    const here = [this.body, this.pager].find((part) => part.contains(held));
    const name = here && nameOf(held);
    this.drawn();
    if (name) [...here.querySelectorAll("button:not(:disabled)")].find((one) => nameOf(one) === name)?.focus({ preventScroll: true });
  }

  drawn() {
    const found = this.rows();
    const pages = Math.max(Math.ceil(found.length / ROWS), 1);
    this.page = Math.min(this.page, pages - 1);
    const some = found.slice(this.page * ROWS, (this.page + 1) * ROWS);
    const { noun } = this.context.study;
    const parameters = this.parameters();
    const heads = [["id", "trial"], ["status", "status"], ["value", noun], ...parameters.map((one) => [`p:${one.name}`, titled(one)]), ["told_at", "told"]];
    fill(this.body, h("table.trials", {}, h("thead", {}, h("tr", {}, heads.map(([key, label]) => this.head(key, label)))), h("tbody", {}, some.map((trial) => this.row(trial, parameters)))));
    this.tell(found.length, pages);
  }

  head(key, label) {
    const [at, sign] = this.sort;
    const sorted = at === key ? (sign > 0 ? "ascending" : "descending") : null;
    const arrow = sorted ? h("span", { "aria-hidden": "true" }, sign > 0 ? " \u2191" : " \u2193") : null;
    const click = () => {
      this.sort = at === key ? [key, -sign] : [key, key === "id" || key === "value" ? -1 : 1];
      this.turn(0);
      this.body.querySelector("th[aria-sort] button")?.focus();
    };
    return h("th", { scope: "col", class: NUMBERS(key) ? "number" : null, "aria-sort": sorted }, h("button.link", { type: "button", onclick: click }, label, arrow));
  }

  row(trial, parameters) {
    const why = [trial.failed, trial.note].flat().filter(Boolean)[0];
    return h(
      "tr", {},
      h("td.number", {}, h("button.link", { type: "button", onclick: () => this.open(trial.id), "aria-label": `Trial ${trial.id}` }, String(trial.id))),
      h("td", {}, trial.status, why && h("span.soft", {}, ": ", named(String(why).slice(0, 120)))),
      h("td.number", {}, trial.value === null ? "" : short(trial.value, 8)),
      parameters.map((one) => h("td.number", { title: exact(trial.params[one.name]) }, named(short(trial.params[one.name])))),
      h("td.time", {}, when(trial.told_at)),
    );
  }

  tell(found, pages) {
    const read = this.read_().length;
    const all = this.start > 0 ? `the newest ${count(read)} of about ${count(this.total)} trials were read; filter and sort look at these` : plural(read, "trial");
    const chosen = found === read ? "" : `${count(found)} of `;
    fill(this.read, `${chosen}${all}.`);
    this.saves.textContent = this.wanted ? `Save these ${count(found)} as CSV` : "Save as CSV";
    this.saves.disabled = Boolean(this.wanted) && found === 0;
    const { page } = this;
    fill(
      this.pager,
      pages > 1 && [
        h("button", { type: "button", disabled: page === 0, onclick: () => this.turn(page - 1) }, "Back"),
        h("span.soft", {}, `page ${page + 1} of ${pages}`),
        h("button", { type: "button", disabled: page >= pages - 1, onclick: () => this.turn(page + 1) }, "On"),
      ],
      this.start > 0 && button(`Read ${count(Math.min(EARLIER, this.start))} earlier ones`, () => this.earlier()),
    );
  }
}

/** A window on a trial; once it is closed, what `again` finds has the focus if that would be lost, since it was drawn anew. */
export function looked(context, id, again) {
  amendable(context, id);
  const over = [...document.querySelectorAll("dialog")].at(-1);
  over.addEventListener("close", () => document.activeElement === document.body && again()?.focus({ preventScroll: true }));
}

/** The records of a CSV; a line break between quotes ends none. */
function records(text) {
  return text.match(/(?:"[^"]*"|[^"\n])*\n/g) ?? [];
}

function nameOf(button) {
  return button.getAttribute("aria-label") ?? button.textContent.replace(/ [\u2191\u2193]$/, "");
}

/** The order of two cells; what is missing comes last either way. */
function compared(a, b, sign) {
  if (a === null || b === null) return sign * ((a === null) - (b === null));
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b));
}
