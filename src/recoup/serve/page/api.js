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
const PLACE = "recoup-session"; // which no page at another port can read, as it could a cookie
let session = null; // where a browser keeps nothing

function known() {
  try {
    session = localStorage.getItem(PLACE) ?? session;
  } catch {
    // a browser may keep nothing
  }
  return session ? { Authorization: `Bearer ${session}` } : {};
}

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

/** Something came from the server. */
export function alive() {
  last = performance.now();
  heard(false);
}

const LOOK = 4000; // ms between two looks whether something was heard
const QUIET = 8000; // ms without a sign of the server after which it is asked for one, and for which that is waited for
const flying = new Set(); // requests that are not answered yet
let last = performance.now(); // when something was heard: no clock that somebody may set
let asking = false;

/** A network may go silent without closing anything: then nothing that waits would ever end. */
async function listen() {
  if (asking || document.hidden || performance.now() - last < QUIET) return;
  asking = true;
  const given = new AbortController();
  const timer = setTimeout(() => given.abort(), QUIET);
  try {
    await fetch("/", { method: "HEAD", cache: "no-store", signal: given.signal });
    alive();
  } catch {
    heard(true);
    flying.forEach((one) => one.abort());
  } finally {
    clearTimeout(timer);
    asking = false;
  }
}

setInterval(listen, LOOK);

/** What `read` makes of an answer, whose body may break off; `signal` gives up. */
async function answered(path, { signal, headers, ...options }, read) {
  const mine = new AbortController();
  const stop = () => mine.abort();
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  flying.add(mine);
  let problem;
  try {
    const answer = await fetch(path, { cache: "no-store", ...options, headers: { ...headers, ...known() }, signal: mine.signal });
    alive();
    if (answer.ok || answer.status === 304) return await read(answer);
    problem = new Problem(answer.status, await answer.json().catch(() => ({})));
  } catch {
    if (signal?.aborted) throw new DOMException("given up", "AbortError");
    heard(true);
    throw new Away();
  } finally {
    flying.delete(mine);
    signal?.removeEventListener("abort", stop);
  }
  if (problem.status === 401 && path !== SESSION) line.dispatchEvent(new Event("locked"));
  throw problem;
}

const text = (answer) => answer.text();

/** What is there now. */
export async function get(path, options = {}) {
  return parsed(await answered(path, options, text));
}

/** What is there if it is another than `known.tag`; else null. */
export async function changed(path, known) {
  const headers = known.tag ? { "If-None-Match": known.tag } : {};
  const [answer, said] = await answered(path, { headers }, async (one) => [one, await one.text()]);
  if (answer.status === 304) return null;
  const found = parsed(said);
  known.tag = answer.headers.get("ETag");
  return found;
}

/** An answer as a file that the browser keeps. */
export async function file(path, accept) {
  return answered(path, { headers: { Accept: accept } }, (answer) => answer.blob());
}

/** Gives `hear` what comes, a piece at a time, until it ends or breaks off. */
export function streamed(path, signal, hear) {
  return answered(path, { signal }, async (answer) => {
    const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = { value: "" }; !piece.done; piece = await pieces.read()) {
      alive();
      hear(piece.value);
    }
  });
}

/** Asks for something that changes nothing, such as a judgement. */
export function ask(path, body, signal = undefined) {
  return write("POST", path, body, { signal });
}

async function write(method, path, body, { signal, key } = {}) {
  const headers = { "Content-Type": "application/json", ...(key ? { "Idempotency-Key": key } : {}) };
  const said = await answered(path, { method, headers, body: JSON.stringify(body ?? {}), signal }, text);
  return said ? parsed(said) : null;
}

/** A key of 128 random bits, also where the page came without TLS. */
function fresh() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const PAUSES = [300, 1000, 2000, 4000];
const AGAIN = [408, 503]; // statuses after which the same is sent again

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
      const again = wrong instanceof Away || AGAIN.includes(wrong.status);
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

/** Exchanges a token for a session. */
export async function enter(token) {
  ({ session } = await write("POST", SESSION, { token }));
  try {
    localStorage.setItem(PLACE, session);
  } catch {
    // a browser may keep nothing
  }
}
