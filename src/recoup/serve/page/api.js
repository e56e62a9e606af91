/** Talks to the server: JSON both ways, problems as sentences, writes that may be repeated. */

/** What the server refuses, in its own sentence. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answers ${status}.`);
    this.status = status;
    this.body = body;
  }
}

/** Nobody answers. */
export class Away extends Error {
  constructor() {
    super("The server does not answer.");
  }
}

const SESSION = "/v1/session";
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG = /^-?\d{16,}$/;

/** JSON, in which whole numbers that JavaScript would round are texts. */
export function parsed(text) {
  const kept = (token) => (LONG.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token);
  return JSON.parse(/\d{16}/.test(text) ? text.replace(TOKENS, kept) : text);
}

/** Whether the server answers; tells those who listen when that changes. */
export const line = new EventTarget();
line.away = false;

function heard(away) {
  if (line.away === away) return;
  line.away = away;
  line.dispatchEvent(new Event("change"));
}

async function answered(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (wrong) {
    if (wrong.name === "AbortError") throw wrong;
    heard(true);
    throw new Away();
  }
  heard(false);
  if (answer.ok || answer.status === 304) return answer;
  const problem = new Problem(answer.status, await answer.json().catch(() => ({})));
  if (answer.status === 401 && path !== SESSION) line.dispatchEvent(new Event("locked"));
  throw problem;
}

/** The body of an answer; it may break off while it is read. */
async function whole(answer) {
  try {
    return await answer.text();
  } catch (wrong) {
    if (wrong.name === "AbortError") throw wrong;
    heard(true);
    throw new Away();
  }
}

/** What is there now. */
export async function get(path, options = {}) {
  return parsed(await whole(await answered(path, options)));
}

/** What is there if it is another than `known.tag`; else null. */
export async function changed(path, known) {
  const headers = known.tag ? { "If-None-Match": known.tag } : {};
  const answer = await answered(path, { headers });
  if (answer.status === 304) return null;
  const found = parsed(await whole(answer));
  known.tag = answer.headers.get("ETag");
  return found;
}

/** An answer as a file that the browser keeps. */
export async function file(path, accept) {
  const answer = await answered(path, { headers: { Accept: accept } });
  return answer.blob();
}

/** Asks for something that changes nothing, such as a judgement. */
export function ask(path, body, signal = undefined) {
  return write("POST", path, body, { signal });
}

async function write(method, path, body, { signal, key } = {}) {
  const headers = { "Content-Type": "application/json", ...(key ? { "Idempotency-Key": key } : {}) };
  const answer = await answered(path, { method, headers, body: JSON.stringify(body ?? {}), signal });
  const text = await whole(answer);
  return text ? parsed(text) : null;
}

/** A key of 128 random bits, also where the page came without TLS. */
function fresh() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const PAUSES = [300, 1000, 2000, 4000];

/**
 * Writes, and goes on until the server has answered: the same key, so that it is done once.
 * `waiting()` is called where that takes longer; `signal` gives up.
 */
export async function insist(path, body, { method = "POST", signal, waiting } = {}) {
  const key = fresh();
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await write(method, path, body, { signal, key });
    } catch (wrong) {
      const again = wrong instanceof Away || wrong.status === 503;
      if (!again) throw wrong;
      waiting?.(wrong);
      await pause(PAUSES[Math.min(attempt, PAUSES.length - 1)], signal);
    }
  }
}

function pause(ms, signal) {
  return new Promise((done, fail) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      fail(new DOMException("given up", "AbortError"));
    });
  });
}

/** Exchanges a token for a cookie. */
export function enter(token) {
  return write("POST", SESSION, { token });
}
