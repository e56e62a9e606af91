/** Where the page begins: the token, the address, and the view that it names. */

import { enter, get, line } from "./api.js";
import { complain, complaint, field, fill, h } from "./dom.js";
import { anyDraft } from "./drafts.js";
import { overview } from "./overview.js";
import { run } from "./run.js";
import { runs } from "./runs.js";
import { anySending } from "./sendings.js";
import { study } from "./study.js";

const main = document.getElementById("main");
const away = document.getElementById("away");
let shown = null;

line.addEventListener("change", () => {
  away.hidden = !line.away;
  away.textContent = line.away
    ? "The server does not answer. What is typed stays; this page goes on by itself when it is back."
    : "";
});
line.addEventListener("locked", () => lock("The server wants its token."));

/** Takes the token out of the address, so that nobody reads it there or in the history. */
function tokenOfAddress() {
  const found = /(?:^#|&)token=([^&]+)/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", `${location.pathname}#/`);
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return found[1];
  }
}

/** A bar with a field for the token; what is on the page stays under it. */
function lock(text) {
  if (document.getElementById("lock")) return;
  const input = h("input", { type: "password", autocomplete: "off", name: "token", required: true });
  const wrong = complaint();
  const open = async (event) => {
    event.preventDefault();
    const token = /token=([^&\s]+)/.exec(input.value)?.[1] ?? input.value.trim();
    try {
      await enter(token);
      form.remove();
      if (shown && here === location.hash) shown.again?.();
      else await route();
    } catch (problem) {
      complain(wrong, problem.message);
      input.select();
    }
  };
  const note = "It stands in the address that recoup serve printed, behind #token=. The whole address will do.";
  const form = h(
    "form.banner", { id: "lock", onsubmit: open, "aria-label": "Open this server" },
    h("p", {}, text), field("Token", input, note), wrong, h("button.main", { type: "submit" }, "Open"),
  );
  const over = document.querySelector("dialog[open]"); // what lies under it cannot be reached
  if (over) over.firstChild.after(form);
  else main.before(form);
  if (!shown) {
    fill(document.getElementById("top"));
    fill(main, h("h1", {}, "Recoup"));
  }
  input.focus();
}

let routes = 0;
let here = null; // the address of what is shown

/** The view that the address names; of two that are looked for at once, the later. */
async function route() {
  const mine = (routes += 1);
  const [kind, name, tab] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  const address = location.hash;
  if (kind === "study" && shown?.name === name) {
    here = address;
    return shown.turn(tab);
  }
  let service;
  try {
    service = await get("/v1");
  } catch (wrong) {
    if (wrong.status !== 401 && mine === routes) return later(wrong);
    return null;
  }
  if (mine !== routes) return shown;
  shown?.end();
  shown = null;
  const made = { study, run, runs }[kind] ?? overview;
  here = address;
  shown = made({ service, name, tab, top: document.getElementById("top"), main });
  window.scrollTo(0, 0);
  return shown;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function later(wrong) {
  if (!shown) fill(main, h("p", {}, wrong.message));
  setTimeout(route, 1000);
}

async function begin() {
  const token = tokenOfAddress();
  if (token) {
    try {
      await enter(token);
    } catch (wrong) {
      if (wrong.status) return lock(wrong.message);
      history.replaceState(null, "", `${location.pathname}#token=${encodeURIComponent(token)}`);
      return setTimeout(begin, 1000);
    }
  }
  return route();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // what stands behind # names a view
  main.focus();
});
addEventListener("beforeunload", (event) => {
  if (anySending() || anyDraft()) event.preventDefault(); // the browser asks
});
addEventListener("hashchange", () => {
  document.querySelectorAll("dialog[open]").forEach((over) => over.close()); // it was of the view before
  begin();
});
begin();
