/** A trial that waits: what to try, and a large field for what came of it. */

import { Beside } from "./beside.js";
import { button, complain, complaint, field, fill, fresh, h, named, say, until } from "./dom.js";
import { draft, forget, lost, sent, stopped, write } from "./drafts.js";
import { exact, numbers, plural, short } from "./numbers.js";
import { receive, sending, Sending } from "./sendings.js";
import { amendable } from "./trial.js";
import { tabled, titled, valued } from "./values.js";

const KINDS = { own: "values of your own", mean: "the mean policy", repeat: "the one before once more" };
const SHOWN = 12; // parameters on a card; more are folded
const LOST = {
  tell: "This was not sent: the page was loaded anew before. Tell it if it is right.",
  cancel: "That it will not be tried was not sent: the page was loaded anew before.",
};

export class Card {
  /** `gone()` where the card is put away. */
  constructor(context, trial, gone) {
    Object.assign(this, { context, trial, away: false, sending: null });
    this.gone = () => {
      forget(this.key);
      gone();
    };
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
    if (this.box) this.begin();
  }

  /** Goes on where a card of this trial was before: what was typed, what is on its way. */
  begin() {
    this.typed = draft(this.key, this.trial.seed);
    if (this.reason.value) this.reason.closest("details").open = true;
    this.typing();
    complain(this.wrong, LOST[lost(this.key)]);
    const on = sending(this.key);
    if (on) this.take(on);
  }

  /** Its view is left. */
  end() {
    this.sending?.leave(this);
  }

  params() {
    const rows = this.context.study.parameters.map((one) => [titled(one), valued(this.trial.params?.[one.name])]);
    const frozen = Object.entries(this.context.study.frozen ?? {}).map(([name, value]) => [named(name), valued(value), "soft"]);
    const all = [...rows, ...frozen];
    if (all.length <= SHOWN + 2) return tabled(all);
    const rest = all.slice(SHOWN);
    return [tabled(all.slice(0, SHOWN)), h("details", {}, h("summary", {}, `${rest.length} more parameters`), tabled(rest))];
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
    this.beside = new Beside(this.context.study);
    const typed = [
      h("label", { for: this.input.id }, label), h("div.row.grow", {}, this.input, this.send),
      h("p.soft", { id: hint }, "Of several episodes: all of them, with spaces between."),
    ];
    const episode = h("p", {}, "What came of it is an episode step by step: a program tells that. Here it can be said that it failed.");
    const form = h(
      "form", { onsubmit: (event) => this.tell(event), autocomplete: "off" },
      this.context.study.space === "actions" ? episode : typed,
      this.beside.node, this.wrong, this.failure(),
    );
    this.box = h("fieldset.plain", { oninput: () => this.keep() }, form);
    return this.box;
  }

  get key() {
    return `${this.context.base}/${this.trial.id}`;
  }

  /** All that is typed here, by names of fields. */
  get typed() {
    return { return: this.input.value, reason: this.reason.value, ...this.beside.typed };
  }

  set typed(values) {
    this.input.value = values.return ?? "";
    this.reason.value = values.reason ?? "";
    this.beside.typed = values;
  }

  keep() {
    write(this.key, this.trial.seed, this.typed);
  }

  /** Other numbers are told beside a return than when the card was made. */
  renew() {
    const { typed, beside } = this;
    this.beside = new Beside(this.context.study);
    beside.node.replaceWith(this.beside.node);
    this.typed = typed;
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
    try {
      Object.assign(body, this.beside.read());
    } catch (problem) {
      return this.refuse(problem.input, problem.message);
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

  post(verb, body, words) {
    complain(this.wrong);
    const { context: { base }, trial, key } = this;
    sent(key, trial.seed, verb);
    const path = `${base}/trials/${trial.id}/${verb}`;
    this.take(new Sending(key, path, body, { base, trial, words, then: told }));
  }

  /** It is on its way, from here or from a card of before. */
  take(on) {
    this.sending = on;
    this.held = this.node.contains(document.activeElement); // disabled, it lets go of the focus
    this.box.disabled = true;
    this.state.textContent = "Sending\u2026";
    on.watch(this);
  }

  /** The server is away: it is sent again until it has answered, or until the person gives up. */
  waiting(why) {
    if (this.state.querySelector("button")) return; // it stays under the finger
    const stop = button("Do not send it", () => this.sending.stop(), "quiet");
    fill(this.state, `${why.message} ${until(why)} `, stop);
  }

  ended({ problem, refused }) {
    this.sending = null;
    if (!problem) return;
    this.box.disabled = false;
    this.state.textContent = "";
    if (refused) this.refused(refused);
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
    if (this.box && !this.sending && !this.beside.fits(this.context.study)) this.renew();
    const parts = [`seed ${exact(trial.seed)}`];
    if (trial.age) parts.push(`asked for ${trial.age}`);
    if (trial.lease && trial.lease !== "none") parts.push(`lent: ${trial.lease}`);
    if (trial.handed_out > 1) parts.push(`handed out ${trial.handed_out} times`);
    fill(this.since, parts.join(" \u00b7 "), trial.worker ? [" \u00b7 ", named(trial.worker)] : null);
  }

  /** It waits no more. True where something was typed here that is to stay. */
  leave() {
    if (this.sending) return true;
    if (!this.box || !Object.values(this.typed).some((text) => text.trim())) return false;
    if (!this.away) {
      this.away = true;
      complain(this.wrong, "It was told, or taken back, from elsewhere meanwhile.");
      this.wrong.append(" ", button("Put right\u2026", () => amendable(this.context, this.trial.id), "quiet"), button("Put the card away", this.gone, "quiet"));
    }
    return true;
  }
}

/** The end of a result's way, whatever is shown by then. */
function told({ key, base, trial, words, answer, problem, refused, watcher }) {
  if (problem) stopped(key, trial.seed);
  if (refused && !watcher) say(`Trial ${trial.id} is as it was: ${refused.message}`);
  if (problem) return;
  forget(key);
  const row = { id: trial.id, answer, words: inWords(trial, answer, words) };
  if (!answer?.slip) say(row.words);
  else if (!watcher) say(`${row.words} ${answer.slip}`);
  receive(base, row);
}

/** What was done, in the words of the server where it says which trials that is. */
function inWords({ id }, answer, words) {
  return /^Trials? \d/.test(answer?.words ?? "") ? answer.words : `Trial ${id}: ${words}.`;
}
