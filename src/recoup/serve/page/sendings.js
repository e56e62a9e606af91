/** What is on its way to the server, and what came of it: neither goes with the view that sent it. */

import { insist } from "./api.js";

const going = new Map(); // key -> its Sending, until somebody was shown its end

/** A write that goes on whatever is shown; `then(sending)` comes at its end. */
export class Sending {
  constructor(key, path, body, more) {
    Object.assign(this, { key, path, body, ...more, why: null, answer: null, problem: null, watcher: null });
    this.given = new AbortController();
    going.set(key, this);
    this.go();
  }

  async go() {
    const waiting = (why) => {
      this.why = why;
      this.watcher?.waiting(why);
    };
    try {
      this.answer = await insist(this.path, this.body, { signal: this.given.signal, waiting });
    } catch (problem) {
      this.problem = problem;
    }
    this.over = true;
    this.then(this);
    if (this.watcher || !this.refused) going.delete(this.key);
    this.watcher?.ended(this);
  }

  /** Whether the server would not have it; null where somebody gave up. */
  get refused() {
    return this.problem && this.problem.name !== "AbortError" ? this.problem : null;
  }

  /** Who shows from now on how it fares: `waiting(why)`, `ended(sending)`. */
  watch(watcher) {
    this.watcher = watcher;
    if (this.over) {
      going.delete(this.key);
      watcher.ended(this);
    } else if (this.why) watcher.waiting(this.why);
  }

  /** Its view is left. */
  leave(watcher) {
    if (this.watcher === watcher) this.watcher = null;
  }

  stop() {
    this.given.abort();
  }
}

/** What is on its way by a key, or was refused while nobody looked. */
export function sending(key) {
  return going.get(key) ?? null;
}

/** All such of trials of a study. */
export function sendingsOf(base) {
  return [...going.values()].filter((one) => one.base === base && one.trial);
}

export function anySending() {
  return [...going.values()].some((one) => !one.over);
}

export const KEPT = 8; // of what was told just now
const receipts = new Map(); // study -> what was told of it here, the oldest first
const readers = new Map(); // study -> who shows that now

/** What was told of a study here: `{ id, answer, words }`, the oldest first. */
export function receiptsOf(base) {
  return receipts.get(base) ?? [];
}

/** Keeps that something was told; slips stay until somebody has said that they are right. */
export function receive(base, row) {
  const all = [...receiptsOf(base), row];
  const plain = all.filter((one) => !one.answer?.slip);
  const old = new Set(plain.slice(0, -KEPT));
  receipts.set(base, all.filter((one) => !old.has(one)));
  readers.get(base)?.(row);
}

export function settle(base, row) {
  receipts.set(base, receiptsOf(base).filter((one) => one !== row));
}

/** Who is called with what is told of a study from now on; gives what ends that. */
export function reading(base, call) {
  readers.set(base, call);
  return () => readers.get(base) === call && readers.delete(base);
}
