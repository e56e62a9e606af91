/** A trial that waits: what to try, and a large field for what came of it. */

import { insist } from "./api.js";
import { button, complain, complaint, field, fill, fresh, h, named, say, until } from "./dom.js";
import { exact, number, numbers, plural, short } from "./numbers.js";
import { amendable } from "./trial.js";
import { titled, valued } from "./values.js";

const KINDS = { own: "values of your own", mean: "the mean policy", repeat: "the one before once more" };
const SHOWN = 12; // parameters on a card; more are folded
const drafts = new Map(); // what was typed and not sent, until its view is there again

export class Card {
  /** `done(answer, words)` once it is told; `gone()` where the card is put away. */
  constructor(context, trial, done, gone) {
    Object.assign(this, { context, trial, done, gone, away: false });
    const head = fresh("trial");
    this.since = h("p.soft", {});
    this.wrong = complaint();
    this.state = h("p.soft", { role: "status" });
    const kind = KINDS[trial.kind];
    this.node = h(
      "article.card.trial", { "aria-labelledby": head, "data-trial": trial.id },
      h("h2", { id: head }, `Trial ${trial.id}`, kind && h("span.badge", {}, kind)),
      this.params(), this.since, context.mayWrite ? this.form() : null, this.state,
    );
    this.update(trial);
  }

  params() {
    const rows = this.context.study.parameters.map((parameter) =>
      h("tr", {}, h("th", { scope: "row" }, titled(parameter)), valued(this.trial.params?.[parameter.name])),
    );
    const frozen = Object.entries(this.context.study.frozen ?? {}).map(([name, value]) =>
      h("tr.soft", {}, h("th", { scope: "row" }, named(name)), valued(value)),
    );
    const table = (some) => h("table.params", {}, h("tbody", {}, some));
    const all = [...rows, ...frozen];
    if (all.length <= SHOWN + 2) return table(all);
    const rest = all.slice(SHOWN);
    return [table(all.slice(0, SHOWN)), h("details", {}, h("summary", {}, `${rest.length} more parameters`), table(rest))];
  }

  form() {
    const hint = fresh("note");
    const how = { id: fresh("return"), "aria-describedby": hint, type: "text", inputmode: "text", autocomplete: "off" };
    this.input = h("input.large", { ...how, name: "return", enterkeyhint: "send" });
    this.input.addEventListener("input", () => this.typing());
    const noun = this.context.study.noun || "return";
    const unit = this.context.study.unit;
    const label = [noun[0].toUpperCase() + noun.slice(1), unit ? h("span.unit", {}, " in ", named(unit)) : null];
    this.send = h("button.main", { type: "submit" }, "Tell");
    this.beside = this.extras();
    const typed = [
      h("label", { for: this.input.id }, label), h("div.row.grow", {}, this.input, this.send),
      h("p.soft", { id: hint }, "Of several episodes: all of them, with spaces between."),
    ];
    const episode = h("p", {}, "What came of it is an episode step by step: a program tells that. Here it can be said that it failed.");
    const form = h(
      "form", { onsubmit: (event) => this.tell(event), autocomplete: "off" },
      this.context.study.space === "actions" ? episode : typed,
      this.beside.map((one) => one.node), this.wrong, this.failure(),
    );
    this.box = h("fieldset.plain", { oninput: () => drafts.set(this.key, this.fields().map((one) => one.value)) }, form);
    drafts.get(this.key)?.forEach((value, i) => (this.fields()[i].value = value));
    if (this.reason.value) this.reason.closest("details").open = true;
    this.typing();
    return this.box;
  }

  get key() {
    return `${this.context.base}/${this.trial.id}`;
  }

  fields() {
    return [this.input, this.reason, ...this.beside.map((one) => one.input)];
  }

  /** Numbers beside the return, and what was known before the trial, where the study has such. */
  extras() {
    const { limit_names: also = [], context_names: known = [] } = this.context.study;
    const one = (name, where, note) => {
      const input = h("input", { type: "text", inputmode: "text", autocomplete: "off" });
      return { name, where, input, node: field(named(name), input, note) };
    };
    return [
      ...also.map((name) => one(name, "also", "A number beside it.")),
      ...known.map((name) => one(name, "context", "Known before the trial.")),
    ];
  }

  failure() {
    this.reason = h("input", { type: "text", maxLength: 1000, autocomplete: "off", name: "reason" });
    this.reason.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.fail(event);
    });
    return h(
      "details", {},
      h("summary", {}, "It failed, or will not be tried"),
      field("What happened", this.reason),
      h(
        "div.row", {},
        button("Tell that it failed", (event) => this.fail(event), "danger"),
        button("It will not be tried", () => this.cancel()),
      ),
    );
  }

  typing() {
    complain(this.wrong);
    this.input.removeAttribute("aria-invalid");
    try {
      const found = numbers(this.input.value);
      const mean = found.reduce((sum, x) => sum + x, 0) / found.length;
      this.state.textContent = found.length > 1 ? `${plural(found.length, "episode")}, ${short(mean)} on average` : "";
    } catch {
      this.state.textContent = "";
    }
  }

  tell(event) {
    event.preventDefault();
    let body;
    try {
      const found = numbers(this.input.value);
      body = found.length === 1 ? { return: found[0] } : { returns: found };
    } catch (problem) {
      return this.refuse(this.input, problem.message);
    }
    for (const { name, where, input } of this.beside) {
      if (!input.value.trim()) continue;
      try {
        body[where] = { ...body[where], [name]: number(input.value) };
      } catch (problem) {
        return this.refuse(input, `${name}: ${problem.message}`);
      }
    }
    return this.post("tell", body, `${(body.returns ?? [body.return]).map(exact).join(", ")} told`);
  }

  fail(event) {
    event.preventDefault();
    const why = this.reason.value.trim();
    if (!why) return this.refuse(this.reason, "Say in a few words why it failed.");
    return this.post("tell", { failed: why }, `failure told (${why})`);
  }

  cancel() {
    return this.post("cancel", { why: this.reason.value.trim() || null }, "will not be tried");
  }

  refuse(input, text) {
    input.setAttribute("aria-invalid", "true");
    input.focus();
    complain(this.wrong, text);
  }

  async post(verb, body, words) {
    complain(this.wrong);
    this.given = new AbortController();
    this.held = this.node.contains(document.activeElement); // disabled, it lets go of the focus
    this.box.disabled = true;
    this.state.textContent = "Sending\u2026";
    const path = `${this.context.base}/trials/${this.trial.id}/${verb}`;
    try {
      const answer = await insist(path, body, { signal: this.given.signal, waiting: (why) => this.waiting(why) });
      if (!answer?.slip) say(`Trial ${this.trial.id}: ${words}.`);
      drafts.delete(this.key);
      this.done(answer, words);
    } catch (problem) {
      this.box.disabled = false;
      this.state.textContent = "";
      this.given = null;
      if (problem.name !== "AbortError") this.refused(problem);
    }
  }

  /** The server is away: it is sent again until it has answered, or until the person gives up. */
  waiting(why) {
    if (this.state.querySelector("button")) return; // it stays under the finger
    const stop = button("Do not send it", () => this.given.abort(), "quiet");
    fill(this.state, `${why.message} ${until(why)} `, stop);
  }

  /** Whether the focus was here when it was sent, and is nowhere else by now. */
  free() {
    return this.held && (document.activeElement === document.body || this.node.contains(document.activeElement));
  }

  refused(problem) {
    const { kept } = problem.body ?? {};
    const told = problem.status === 409 && kept !== undefined && kept !== null;
    complain(this.wrong, problem.message);
    if (told) {
      this.away = true;
      const { id } = this.trial;
      this.wrong.append(" ", button("Put right\u2026", () => amendable(this.context, id), "quiet"), button("Put the card away", this.gone, "quiet"));
    } else if (this.free()) this.input.focus();
  }

  update(trial) {
    this.trial = trial;
    const parts = [`seed ${exact(trial.seed)}`];
    if (trial.age) parts.push(`asked for ${trial.age}`);
    if (trial.lease && trial.lease !== "none") parts.push(`lent: ${trial.lease}`);
    if (trial.handed_out > 1) parts.push(`handed out ${trial.handed_out} times`);
    fill(this.since, parts.join(" \u00b7 "), trial.worker ? [" \u00b7 ", named(trial.worker)] : null);
  }

  /** It waits no more. True where something was typed here that is to stay. */
  leave() {
    if (this.given) return true;
    const typed = this.input && (this.input.value.trim() || this.reason.value.trim());
    if (!typed) return false;
    if (!this.away) {
      this.away = true;
      complain(this.wrong, "It was told, or taken back, from elsewhere meanwhile.");
      this.wrong.append(" ", button("Put right\u2026", () => amendable(this.context, this.trial.id), "quiet"), button("Put the card away", this.gone, "quiet"));
    }
    return true;
  }
}
