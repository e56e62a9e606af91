/** The one stream of the page: open while the page is seen, opened again when it breaks. */

import { line, streamed } from "./api.js";

const PAUSES = [500, 1000, 2000, 4000];
const QUIET = ": here\n\n"; // what comes while nothing changes

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

  async open() {
    this.close();
    const given = new AbortController();
    this.given = given;
    try {
      await streamed(this.path, given.signal, (piece) => {
        if (this.given !== given) return;
        this.failures = 0;
        this.flows = true;
        if (piece !== QUIET) this.changed();
      });
    } catch {
      // it broke off, or nobody answered
    }
    if (this.given === given) this.again();
  }

  /** The server went silent, and the stream would not say so; or it is back. */
  heard() {
    if (line.away) {
      if (this.given) this.again();
    } else if (!this.flows) this.look();
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
    this.given?.abort();
    this.given = null;
    this.flows = false;
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
