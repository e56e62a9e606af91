/** The one stream of the page: open while the page is seen, opened again when it breaks. */

const PAUSES = [500, 1000, 2000, 4000];

export class Live {
  /** `changed()` is called when something may have changed, and each time it is opened. */
  constructor(path, changed) {
    this.path = path;
    this.changed = changed;
    this.failures = 0;
    this.look = () => (document.hidden ? this.close() : this.open());
    document.addEventListener("visibilitychange", this.look);
    this.look();
  }

  open() {
    this.close();
    const stream = new EventSource(this.path);
    this.stream = stream;
    stream.addEventListener("open", () => {
      this.failures = 0;
      this.changed();
    });
    stream.addEventListener("changed", () => this.changed());
    stream.addEventListener("error", () => this.again());
  }

  again() {
    this.close();
    const wait = PAUSES[Math.min(this.failures, PAUSES.length - 1)];
    this.failures += 1;
    this.changed(); // says whether anybody answers, and why not
    this.timer = setTimeout(this.look, wait);
  }

  close() {
    clearTimeout(this.timer);
    this.stream?.close();
    this.stream = null;
  }

  end() {
    this.close();
    document.removeEventListener("visibilitychange", this.look);
  }
}

/** One call at a time; what comes meanwhile is one more call afterwards. */
export function coalesced(call) {
  let running = false;
  let again = false;
  return async function run() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      do {
        again = false;
        await call();
      } while (again);
    } finally {
      running = false;
    }
  };
}
