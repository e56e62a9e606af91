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

  /** Nothing is said on the way. */
  waits() {
    this.node.classList.add("moving");
    this.kind.textContent = "The data are being asked\u2026";
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
    this.without = h("p.soft", { role: "status", hidden: true });
    this.slow = !spreads(context.study); // whether there is no answer on the way
    const all = this.slow ? null : this.everySpread();
    this.node = h(
      "div.ask-data", {},
      h("h1", {}, "What would another distribution earn?"),
      h("p.soft", {}, `Move a mean${this.slow ? "" : " or a spread"}. The answer is drawn from the results that are there; no trial is spent on it.`),
      h(
        "div.two", {},
        h("div.sticky", {}, this.answer.node, this.without, this.wrong, this.actions(), this.suggested),
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
    const say_ = () => {
      shown.textContent = `${short(times(input.value), 3)} times the newest`;
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    input.addEventListener("input", () => {
      say_();
      this.rows.forEach((row) => row.setSpread(times(input.value)));
      this.moved();
    });
    this.all = { input, say: say_ };
    say_();
    return h("div.card.every", {}, field("Spread of all parameters", input), shown);
  }

  /** The candidate as it is asked for: what differs from the newest distribution; without names all of it. */
  candidate() {
    const given = (touched, value) => {
      const rows = this.rows.filter(touched);
      const sent = rows.length && !this.context.study.named ? this.rows : rows;
      return rows.length ? Object.fromEntries(sent.map((row) => [row.name, value(row)])) : null;
    };
    return { mean: given((row) => row.touchedMean, (row) => row.mean()), std: given((row) => row.touchedSpread, (row) => row.spread()) };
  }

  moved() {
    this.touches += 1;
    complain(this.wrong);
    fill(this.suggested); // it was of other values
    this.stopped?.abort();
    this.rest();
    this.hurry();
  }

  /** The quick answer: one question at a time, always of the newest candidate. */
  async hurry() {
    if (this.slow) return this.answer.waits();
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
        this.slow = wrong.status === 409; // it is always refused here
        if (mine > this.answered) this.slow ? this.answer.waits() : complain(this.wrong, wrong.message);
      }
    } while (this.pending && !this.slow);
    this.hurrying = false;
    return null;
  }

  async evaluate() {
    this.stopped?.abort();
    this.correlations();
    const mine = new AbortController();
    const touches = this.touches;
    this.stopped = mine;
    try {
      const found = await ask(`${this.context.base}/evaluate`, this.candidate(), mine.signal);
      if (this.stopped !== mine) return;
      this.answered = touches;
      this.answer.whole(found);
      this.compare(found);
      complain(this.wrong);
    } catch (wrong) {
      if (wrong.name === "AbortError") return;
      this.answered = touches;
      this.answer.silent(wrong.message);
    }
  }

  /** Other spreads are those of parameters that go each by itself. */
  correlations() {
    const dropped = this.context.study.correlated && this.rows.some((row) => row.touchedSpread);
    complain(this.without, dropped ? "With another spread the parameters vary each by itself: the correlations of the newest distribution are left out." : "");
  }

  reset() {
    this.touches += 1;
    this.rows.forEach((row) => row.reset(this.context.study));
    if (this.all) this.all.input.value = position(1);
    this.all?.say();
    fill(this.suggested);
    this.evaluate();
  }

  async suggest() {
    fill(this.suggested, "Looking\u2026");
    const before = this.touches;
    try {
      const found = await ask(`${this.context.base}/suggest`, {});
      if (before !== this.touches) return; // moved by hand meanwhile
      if (!found.params) return void fill(this.suggested, found.sentence);
      this.touches += 1;
      this.rows.forEach((row) => row.setMean(found.params[row.name]));
      this.tried = { touches: this.touches, earns: between(found.value, found.low, found.high) };
      this.evaluate();
    } catch (wrong) {
      fill(this.suggested, wrong.message);
    }
  }

  /** Beside the answer, which is of a distribution, what its means alone should earn, where they were suggested. */
  compare({ mean, low, high }) {
    if (this.tried?.touches !== this.touches) return;
    const does = this.context.study.noun === "cost" ? "cost" : "earn";
    const around = mean === null ? "not known" : between(mean, low, high);
    const spread = this.rows.some((row) => row.touchedSpread) ? "the spread that is set here" : "the search's spread";
    fill(this.suggested, `Tried as they are, these values should ${does} ${this.tried.earns}; with ${spread} around them: ${around}.`);
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

/** Whether there are spreads of parameters: a search in actions has none. */
function spreads({ space }) {
  return space !== "actions";
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
    this.slider = this.meanSlider(id);
    for (const one of [this.input, this.slider]) one?.addEventListener("blur", () => this.follow(this.study)); // what came meanwhile
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
      spreads(study) && h("label.spread", {}, h("span.soft", {}, "spread"), this.spreadSlider, this.shown),
    );
    this.reset(study);
  }

  meanSlider(id) {
    const { parameter } = this;
    if (parameter.choices) return null;
    const slider = h("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-labelledby": id });
    slider.addEventListener("input", () => {
      const place = Number(slider.value);
      this.put(place === this.scale.of(this.newest) ? this.newest : this.scale.value(place));
      this.right();
      this.moved();
    });
    return slider;
  }

  typedIn() {
    this.touchedMean = true;
    try {
      this.touchedMean = this.mean() !== this.newest;
    } catch (wrong) {
      return complain(this.wrong, wrong.message);
    }
    this.right();
    this.place();
    return this.moved();
  }

  /** There is nothing wrong with what stands in its field. */
  right() {
    complain(this.wrong);
    this.input.removeAttribute("aria-invalid");
  }

  /** What stands in its field; the focus stays where it is, since sliders and the stream ask for it too. */
  mean() {
    return read(this.parameter, this.input, false);
  }

  spread() {
    return this.factor * this.newestSpread;
  }

  setMean(value) {
    this.put(value);
    this.right();
    this.place();
  }

  /** Another mean; the newest's own is none. */
  put(value) {
    this.touchedMean = value !== this.newest;
    this.input.value = exact(value);
    this.voice();
  }

  setSpread(factor) {
    this.touchedSpread = factor !== 1;
    this.factor = factor;
    this.tell();
  }

  tell() {
    const factor = short(this.factor, 3);
    this.spreadSlider.value = position(this.factor);
    this.spreadSlider.setAttribute("aria-valuetext", `${factor} times the newest`);
    this.shown.textContent = `\u00d7 ${factor}`;
  }

  /** What the slider says to those who hear it. */
  voice() {
    const { unit } = this.parameter;
    this.slider?.setAttribute("aria-valuetext", `${this.input.value}${unit ? ` ${unit}` : ""}`);
  }

  place() {
    if (this.slider) this.slider.value = String(this.scale.place(number(this.input.value)));
    this.voice();
  }

  reset(study) {
    this.touchedMean = false;
    this.touchedSpread = false;
    this.factor = 1;
    this.right();
    this.follow(study);
    this.tell();
  }

  /** The newest distribution is another; what was touched stays, and so does what is being looked at. */
  follow(study) {
    this.study = study;
    this.newest = study.mean[this.name];
    this.newestSpread = study.std?.[this.name] ?? 0.5;
    const held = document.activeElement;
    if (held === this.input || (this.touchedMean && held === this.slider)) return;
    if (this.slider) this.scale = scaled(this.parameter, study);
    if (!this.touchedMean) this.input.value = exact(this.newest);
    if (!this.input.hasAttribute("aria-invalid")) this.place();
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
  const place = (value) => Math.round((STEPS * ((log ? Math.log(inside(value)) : inside(value)) - a)) / (b - a || 1));
  return {
    value: (at) => inside(rounded(log ? Math.exp(a + ((b - a) * at) / STEPS) : a + ((b - a) * at) / STEPS)),
    of: (value) => (value === inside(value) ? place(value) : null), // where it is, if it is there
    place,
  };
}
