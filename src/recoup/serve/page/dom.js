/** Elements. Whatever comes from a file is inserted as text: nothing here parses HTML. */

/** `h("p.soft", {id: "x", onclick: f}, "text", node, [more])`; null children are left out. */
export function h(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...children.flat(Infinity).filter((x) => x !== null && x !== undefined && x !== false));
  return node;
}

function set(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (name in node && typeof value !== "string") node[name] = value;
  else node.setAttribute(name, value === true ? "" : String(value));
}

/** Puts other children in the place of those of `node`. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((x) => x !== null && x !== undefined && x !== false));
  return node;
}

/** A name that a file gave: shown in its own direction, whatever surrounds it. */
export function named(text) {
  return h("bdi.name", {}, String(text));
}

let count = 0;

/** An id that no other element has. */
export function fresh(stem) {
  count += 1;
  return `${stem}-${count}`;
}

/** A field under its label; `note` says more about it. */
export function field(label, input, note = null) {
  input.id ||= fresh("field");
  const parts = [h("label", { for: input.id }, label), input];
  if (note) {
    const id = fresh("note");
    input.setAttribute("aria-describedby", id);
    parts.push(h("p.soft", { id }, note));
  }
  return h("div.field", {}, parts);
}

export function button(label, onclick, kind = "") {
  return h(`button${kind && "." + kind}`, { type: "button", onclick }, label);
}

/** A table of `[name, value]`, each a text or a node. */
export function facts(rows) {
  return h("dl.facts", {}, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** A line that is read out at once: what went wrong with what was typed. */
export function complaint(text = "") {
  return h("p.wrong", { role: "alert", hidden: !text }, text);
}

export function complain(node, text) {
  if (node.textContent !== (text || "")) node.textContent = text || ""; // else it would be read out again
  node.hidden = !text;
}

/**
 * One write at a time from `area`: `send({ signal, waiting })` is not begun while another is on its way.
 * What goes wrong, and why it takes long, stands in the line `wrong`; a window that is closed sends no more.
 */
export async function once(area, wrong, send) {
  if (area.getAttribute("aria-busy")) return;
  const given = new AbortController();
  const stop = () => given.abort();
  area.closest("dialog")?.addEventListener("close", stop);
  area.setAttribute("aria-busy", "true");
  complain(wrong);
  try {
    await send({ signal: given.signal, waiting: (why) => complain(wrong, `${why.message} ${until(why)}`) });
    complain(wrong);
  } catch (problem) {
    complain(wrong, problem.name === "AbortError" ? "" : problem.message);
  } finally {
    area.closest("dialog")?.removeEventListener("close", stop);
    area.removeAttribute("aria-busy");
  }
}

/** What becomes of a write that has no answer yet. */
export function until({ status }) {
  return status ? "It is sent again until it is taken." : "It is sent as soon as it does.";
}

/** What waits until nothing has happened for `ms`. */
export function rested(ms, call) {
  let timer = null;
  const later = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...args), ms);
  };
  later.stop = () => clearTimeout(timer);
  return later;
}

/** Says something in passing, on the screen and to screen readers: those hear what comes into a line that is there. */
export function say(text) {
  const node = document.getElementById("said");
  fill(node, h("span", {}, text)); // a new one, which is read out also where it says the same
  node.classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => {
    node.classList.remove("shown");
    fill(node);
  }, 6000);
}

/** A window over the page. It goes when it is closed, and the focus goes back. */
export function dialog(title, ...content) {
  const head = fresh("head");
  const close = () => node.close();
  const node = h(
    "dialog", { "aria-labelledby": head, onclose: () => node.remove() },
    h("div.dialog-head", {}, h("h2", { id: head }, title), button("Close", close, "quiet")),
    content,
  );
  document.body.append(node);
  node.showModal();
  return node;
}
