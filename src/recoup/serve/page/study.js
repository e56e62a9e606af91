/** A study: what stands over its four views, and the stream that keeps them up to date. */

import { changed, get, insist, line } from "./api.js";
import { data } from "./data.js";
import { deploy } from "./deploy.js";
import { button, complain, complaint, fill, h, named, once, say } from "./dom.js";
import { coalesced, Live } from "./live.js";
import { plural } from "./numbers.js";
import { counted, onlyReads } from "./overview.js";
import { see } from "./see.js";
import { work } from "./work.js";

const TABS = [
  ["work", "Work", work],
  ["see", "See", see],
  ["data", "Ask the data", data],
  ["deploy", "Deploy", deploy],
];

export function study({ service, name, tab, top, main }) {
  const base = `/v1/studies/${encodeURIComponent(name)}`;
  const context = { name, base, study: null, mayWrite: false, onlyRead: null };
  const known = {};
  const head = new Head(() => refresh());
  const links = new Map(TABS.map(([key, label]) => [key, h("a", { href: `#/study/${encodeURIComponent(name)}/${key}` }, label)]));
  const trouble = complaint();
  const stuck = complaint();
  const tabs = h("nav", { "aria-label": "Views of the study" }, [...links.values()]);
  fill(top, h("div.bar", {}, h("a", { href: "#/" }, "All studies"), head.node), tabs, trouble, stuck);
  let view = null;
  let at = null;
  let ended = false;

  function turn(to) {
    const [key, , make] = TABS.find(([one]) => one === to) ?? TABS[0];
    if (key === at) return;
    at = key;
    view?.end?.();
    view = null;
    for (const [other, link] of links) other === key ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
    if (context.study) show(make);
  }

  function show(make) {
    view = make(context);
    fill(main, view.node);
    view.update();
  }

  const refresh = coalesced(async () => {
    try {
      const found = await changed(base, known);
      if (ended) return;
      if (found) {
        context.study = found;
        context.onlyRead = onlyRead(service, found);
        context.mayWrite = !context.onlyRead;
        head.draw(context);
        complain(stuck, found.stuck);
      }
      complain(trouble);
      if (!view) show(TABS.find(([key]) => key === at)[2]);
      else if (found) view.update();
    } catch (wrong) {
      if (wrong.status && wrong.status !== 401 && !ended) gone(wrong);
    }
  });

  /** It cannot be read: what was shown before stays, under the reason. */
  function gone(wrong) {
    known.tag = null;
    if (context.study) complain(trouble, wrong.message);
    else fill(main, h("h1", {}, "This study cannot be shown"), h("p.wrong", { role: "alert" }, wrong.message));
  }

  /** After the server was away: what was asked of it meanwhile has no answer. */
  function back() {
    known.tag = null;
    if (!line.away) refresh();
  }
  context.refresh = refresh;

  turn(tab);
  refresh();
  const live = new Live(`${base}/events`, refresh);
  line.addEventListener("change", back);

  /** Another token: it may allow more than the one before, or less. */
  const again = async () => {
    const before = service.may_write;
    service = await get("/v1").catch(() => service);
    if (service.may_write !== before) {
      view?.end?.();
      view = null;
    }
    known.tag = null;
    live.look();
    return refresh();
  };
  const end = () => {
    ended = true;
    line.removeEventListener("change", back);
    live.end();
    view?.end?.();
  };
  return { name, turn, again, end };
}

/** Why nothing can be told here; null where it can. */
function onlyRead(service, { run, writable }) {
  if (run) return "This is the study of a run, which asks and tells by itself.";
  if (!service.may_write) return onlyReads(service);
  return writable === false ? "The file can only be read: nothing can be told or asked for." : null;
}

/** What stands over the views: how it fares, and whether it is paused. */
class Head {
  constructor(refresh) {
    this.refresh = refresh;
    this.said = h("span.soft", {});
    this.name = h("strong", {});
    this.wrong = complaint();
    this.resume = button("Resume", () => this.resumed());
    this.paused = h("span.paused", {}, "Paused: nobody is given trials. ", this.resume);
    this.node = h("div.bar-study", {}, this.name, this.said, this.wrong);
  }

  draw({ base, study: now, mayWrite }) {
    this.base = base;
    const title = now.title || now.name;
    document.title = `${title.slice(0, 80)} \u2013 Recoup`;
    const due = now.missing?.length ? "a move is due, and needs parts that this server does not have" : now.stuck ? "a move is due" : "a move is being made";
    const until = now.until_move > 0 ? `${plural(now.until_move, "result")} until the next move` : due;
    this.said.textContent = [counted(now.counts), plural(now.moves, "move"), until].join(" \u00b7 ");
    this.name.title = title;
    if (this.name.textContent !== title) fill(this.name, named(title));
    if (!now.paused_since) this.paused.remove();
    else if (!this.paused.isConnected) this.wrong.before(this.paused);
    this.resume.hidden = !mayWrite;
  }

  resumed() {
    return once(this.node, this.wrong, async (how) => {
      await insist(`${this.base}/resume`, {}, how);
      say("Trials can be asked for again.");
      this.refresh();
    });
  }
}
