/** Ask the data: what would another distribution earn? No rollout is spent on it. */

import { ask, insist } from "./api.js";
import { button, complain, complaint, field, fill, fresh, h, once, rested, say } from "./dom.js";
import { between, exact, number, percent, short } from "./numbers.js";
import { filter, range, read, titled, typed } from "./values.js";

const REST = 450; // ms without a touch after which the whole answer is asked for
const STEPS = 1000; // of a slider
const MOST = 4; // times the newest spread, at the end of its slider

export function data(context) {
  const panel = new Panel(context);
  return { node: panel.node, update: () => panel.update(), end: () => panel.end() };
}

/** What the data say of the candidate, at rest and on the way. */
class Answer {
  constructor() {
    this.value = h("b.answer-value", {});
    this.words = h("p", {});
    this.unseen = h("p.soft", {});
    this.meter = h("meter", { min: 0, max: 1, low: 0.2, high: 0.5, optimum: 0, "aria-label": "Share of the candidate where hardly any result could have been drawn" });
    this.kind = h("p.soft", {}, "The data are being asked\u2026");
    this.node = h("div.card.answer", { role: "status", "aria-live": "polite", tabIndex: 0 }, this.kind, this.value, this.meter, this.unseen, this.words);
  }

  quick(found) {
    this.node.classList.add("moving");
    this.kind.textContent = "On the way, by weights alone";
    const value = found.value ?? found.mean ?? null;
    this.value.textContent = value === null ? "" : `about ${short(value, 4)}`;
    this.words.textContent = value === null ? "The data say nothing of it." : "";
    this.share(found.unseen);
  }

  whole(found) {
    this.node.classList.remove("moving");
    this.kind.textContent = "At rest, as recoup study evaluate says it";
    this.value.textContent = found.mean === null ? "" : between(found.mean, found.low, found.high);
    this.words.textContent = found.sentence;
    this.share(found.unseen);
  }

  share(unseen) {
    const known = typeof unseen === "number";
    this.meter.hidden = !known;
    if (known) this.meter.value = unseen;
    this.unseen.textContent = known ? `unseen: ${percent(unseen)} of it` : "";
  }

  silent(text) {
    this.node.classList.remove("moving");
    this.kind.textContent = "";
    this.value.textContent = "";
    this.words.textContent = text;
    this.share(null);
  }
}

class Panel {
  constructor(context) {
    Object.assign(this, { context, touches: 0, answered: -1 }); // candidates so far; the last with a whole answer
    this.answer = new Answer();
    this.wrong = complaint();
    this.rest = rested(REST, () => this.evaluate());
    this.rows = context.study.parameters.map((parameter) => new Row(parameter, context.study, () => this.moved()));
    this.suggested = h("p", { role: "status" });
    const all = this.everySpread();
    this.node = h(
      "div.ask-data", {},
      h("h1", {}, "What would another distribution earn?"),
      h("p.soft", {}, "Move a mean or a spread. The answer is drawn from the results that are there; no trial is spent on it."),
      h(
        "div.two", {},
        h("div.sticky", {}, this.answer.node, this.wrong, this.actions(), this.suggested),
        h("div", {}, all, this.rows.length > 12 ? filter(this.rows) : null, h("div.sliders", {}, this.rows.map((row) => row.node))),
      ),
    );
  }

  actions() {
    const { mayWrite } = this.context;
    return h(
      "div.row", {},
      button("Back to the newest", () => this.reset()),
      button("Best within the data", () => this.suggest()),
      mayWrite && button("Put these means in line", () => this.enqueue(), "main"),
    );
  }

  /** One slider for the spread of all parameters. */
  everySpread() {
    const input = h("input", { type: "range", min: 0, max: STEPS, step: 1 });
    const shown = h("output", {});
    input.value = position(1);
    const say_ = () => (shown.textContent = `${short(times(input.value), 3)} times the newest`);
    input.addEventListener("input", () => {
      say_();
      this.rows.forEach((row) => row.setSpread(times(input.value)));
      this.moved();
    });
    this.all = { input, say: say_ };
    say_();
    return h("div.card.every", {}, field("Spread of all parameters", input), shown);
  }

  /** The candidate as it is asked for; what nobody has touched stays as the newest distribution. */
  candidate() {
    const touched = this.rows.filter((row) => row.touchedMean);
    const wider = this.rows.filter((row) => row.touchedSpread);
    const mean = touched.length ? Object.fromEntries(this.rows.map((row) => [row.name, row.mean()])) : null;
    const std = wider.length ? Object.fromEntries(this.rows.map((row) => [row.name, row.spread()])) : null;
    return { mean, std };
  }

  moved() {
    this.touches += 1;
    complain(this.wrong);
    this.stopped?.abort();
    this.rest();
    this.hurry();
  }

  /** The quick answer: one question at a time, always of the newest candidate. */
  async hurry() {
    if (this.hurrying) {
      this.pending = true;
      return;
    }
    this.hurrying = true;
    do {
      this.pending = false;
      const mine = this.touches;
      try {
        const body = { ...this.candidate(), quick: true };
        const found = await ask(`${this.context.base}/evaluate`, body);
        if (mine > this.answered) this.answer.quick(found); // else the whole answer was faster
      } catch (wrong) {
        if (mine > this.answered) complain(this.wrong, wrong.message);
      }
    } while (this.pending);
    this.hurrying = false;
  }

  async evaluate() {
    this.stopped?.abort();
    const mine = new AbortController();
    const touches = this.touches;
    this.stopped = mine;
    try {
      const found = await ask(`${this.context.base}/evaluate`, this.candidate(), mine.signal);
      if (this.stopped !== mine) return;
      this.answered = touches;
      this.answer.whole(found);
      complain(this.wrong);
    } catch (wrong) {
      if (wrong.name === "AbortError") return;
      this.answered = touches;
      this.answer.silent(wrong.message);
    }
  }

  reset() {
    this.touches += 1;
    this.rows.forEach((row) => row.reset(this.context.study));
    this.all.input.value = position(1);
    this.all.say();
    fill(this.suggested);
    this.evaluate();
  }

  async suggest() {
    fill(this.suggested, "Looking\u2026");
    const before = this.touches;
    try {
      const found = await ask(`${this.context.base}/suggest`, {});
      fill(this.suggested, found.sentence);
      if (!found.params || before !== this.touches) return; // moved by hand meanwhile
      this.touches += 1;
      this.rows.forEach((row) => row.setMean(found.params[row.name]));
      this.evaluate();
    } catch (wrong) {
      fill(this.suggested, wrong.message);
    }
  }

  enqueue() {
    return once(this.node, this.wrong, async (how) => {
      const params = Object.fromEntries(this.rows.map((row) => [row.name, row.mean()]));
      await insist(`${this.context.base}/enqueue`, { params, note: "asked of the data" }, how);
      say("In line: the next who asks is given it.");
      this.context.refresh();
    });
  }

  /** New results: what nobody has touched goes along, and the answer is asked for again. */
  update() {
    this.rows.forEach((row) => row.follow(this.context.study));
    this.evaluate();
  }

  end() {
    this.rest.stop();
    this.stopped?.abort();
  }
}

/** The spread at a place of its slider, in newest spreads: from a quarter to four. */
function times(place) {
  return MOST ** ((2 * Number(place)) / STEPS - 1);
}

function position(factor) {
  return String(Math.round((STEPS * (Math.log(factor) / Math.log(MOST) + 1)) / 2));
}

/** One parameter: a slider and a field for its mean, a slider for its spread. */
class Row {
  constructor(parameter, study, moved) {
    Object.assign(this, { parameter, name: parameter.name, moved, touchedMean: false, touchedSpread: false });
    const id = fresh("parameter");
    this.input = typed(parameter, study.mean[parameter.name]);
    this.input.setAttribute("aria-labelledby", id);
    this.input.addEventListener("change", () => this.typedIn());
    this.slider = this.meanSlider(id, study);
    this.spreadSlider = h("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-label": `Spread of ${parameter.name}` });
    this.shown = h("output.soft", {});
    this.spreadSlider.addEventListener("input", () => {
      this.setSpread(times(this.spreadSlider.value));
      moved();
    });
    this.wrong = complaint();
    this.node = h(
      "div.slider-row", {}, h("h2.small", { id }, titled(parameter), h("span.soft", {}, " ", range(parameter))),
      h("div.mean", {}, this.slider, this.input), this.wrong,
      h("label.spread", {}, h("span.soft", {}, "spread"), this.spreadSlider, this.shown),
    );
    this.reset(study);
  }

  meanSlider(id, study) {
    const { parameter } = this;
    if (parameter.choices) return null;
    this.scale = scaled(parameter, study);
    const slider = h("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-labelledby": id });
    slider.addEventListener("input", () => {
      this.touchedMean = true;
      this.input.value = exact(this.scale.value(Number(slider.value)));
      complain(this.wrong);
      this.moved();
    });
    return slider;
  }

  typedIn() {
    try {
      this.mean();
    } catch (wrong) {
      return complain(this.wrong, wrong.message);
    }
    complain(this.wrong);
    this.input.removeAttribute("aria-invalid");
    this.touchedMean = true;
    this.place();
    return this.moved();
  }

  /** What stands in its field; the focus stays where it is, since sliders and the stream ask for it too. */
  mean() {
    return read(this.parameter, this.input, false);
  }

  spread() {
    return this.factor * this.newest;
  }

  setMean(value) {
    this.touchedMean = true;
    this.input.value = exact(value);
    this.place();
  }

  setSpread(factor) {
    this.touchedSpread = true;
    this.factor = factor;
    this.tell();
  }

  tell() {
    this.spreadSlider.value = position(this.factor);
    this.shown.textContent = `\u00d7 ${short(this.factor, 3)}`;
  }

  place() {
    if (this.slider) this.slider.value = String(this.scale.place(number(this.input.value)));
  }

  reset(study) {
    this.touchedMean = false;
    this.touchedSpread = false;
    this.factor = 1;
    complain(this.wrong);
    this.follow(study);
    this.tell();
  }

  follow(study) {
    this.newest = study.std?.[this.name] ?? 0.5;
    if (this.touchedMean || document.activeElement === this.input) return;
    this.input.value = exact(study.mean[this.name]);
    this.place();
  }
}

/** Between the places of a slider and the values of a parameter. */
function scaled({ low, high, scale, name }, study) {
  const start = study.mean[name];
  const around = 4 * Math.max(study.high?.[name] - start || 0, start - study.low?.[name] || 0) || 4;
  const [least, most] = typeof low === "number" && typeof high === "number" ? [low, high] : [start - around, start + around];
  const log = scale === "log" && least > 0;
  const [a, b] = log ? [Math.log(least), Math.log(most)] : [least, most];
  const rounded = (value) => (scale === "int" ? Math.round(value) : Number(value.toPrecision(6)));
  const inside = (value) => Math.min(Math.max(value, least), most);
  return {
    value: (place) => inside(rounded(log ? Math.exp(a + ((b - a) * place) / STEPS) : a + ((b - a) * place) / STEPS)),
    place: (value) => Math.round((STEPS * ((log ? Math.log(inside(value)) : inside(value)) - a)) / (b - a || 1)),
  };
}
