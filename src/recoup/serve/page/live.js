/** The one stream of the page: open while the page is seen, opened again when it breaks. */

import { alive, line } from "./api.js";

const PAUSES = [500, 1000, 2000, 4000];

export class Live {
  /** `changed()` is called when something may have changed, and each time it is opened. */
  constructor(path, changed) {
    this.path = path;
    this.changed = changed;
    this.failures = 0;
    this.look = () => (document.hidden ? this.close() : this.open());
    this.turned = () => this.heard();
    document.addEventListener("visibilitychange", this.look);
    line.addEventListener("change", this.turned);
    this.look();
  }

  open() {
    this.close();
    const stream = new EventSource(this.path);
    this.stream = stream;
    stream.addEventListener("open", () => {
      this.failures = 0;
      alive();
      this.changed();
    });
    stream.addEventListener("changed", () => {
      alive();
      this.changed();
    });
    stream.addEventListener("error", () => this.again());
  }

  /** The server went silent, and the stream would not say so; or it is back. */
  heard() {
    if (line.away) {
      if (this.stream) this.again();
    } else if (this.stream?.readyState !== EventSource.OPEN) this.look();
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
    line.removeEventListener("change", this.turned);
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
