/** A study: what stands over its four views, and the stream that keeps them up to date. */

import { changed, insist } from "./api.js";
import { data } from "./data.js";
import { deploy } from "./deploy.js";
import { button, fill, h, named, say } from "./dom.js";
import { coalesced, Live } from "./live.js";
import { plural } from "./numbers.js";
import { counted } from "./overview.js";
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
  const context = { name, base, study: null, mayWrite: false };
  const known = {};
  const head = h("div.bar-study", {});
  const tabs = h("nav", { "aria-label": "Views of the study" });
  fill(top, h("div.bar", {}, h("a", { href: "#/" }, "All studies"), head), tabs);
  let view = null;
  let at = null;
  let ended = false;

  function turn(to) {
    const [key, , make] = TABS.find(([one]) => one === to) ?? TABS[0];
    if (key === at) return;
    at = key;
    view?.end?.();
    view = null;
    drawTabs(tabs, name, key);
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
        context.mayWrite = service.may_write && found.writable !== false && !found.run;
        drawHead(head, context, refresh);
      }
      if (!view) show(TABS.find(([key]) => key === at)[2]);
      else if (found) view.update();
    } catch (wrong) {
      if (wrong.status && wrong.status !== 401 && !ended) gone(main, wrong, context.study);
    }
  });
  context.refresh = refresh;

  turn(tab);
  refresh();
  const live = new Live(`${base}/events`, refresh);
  const again = () => {
    known.tag = null;
    live.look();
    return refresh();
  };
  const end = () => {
    ended = true;
    live.end();
    view?.end?.();
  };
  return { name, turn, again, end };
}

function gone(main, wrong, before) {
  if (before) say(wrong.message);
  else fill(main, h("h1", {}, "This study cannot be shown"), h("p.wrong", { role: "alert" }, wrong.message));
}

function drawTabs(tabs, name, at) {
  const link = ([key, label]) =>
    h("a", { href: `#/study/${encodeURIComponent(name)}/${key}`, "aria-current": key === at ? "page" : null }, label);
  fill(tabs, TABS.map(link));
}

function drawHead(head, context, refresh) {
  const { study: now } = context;
  const title = now.title || now.name;
  document.title = `${title.slice(0, 80)} \u2013 Recoup`;
  const until = now.until_move > 0 ? `${plural(now.until_move, "result")} until the next move` : "a move is being made";
  const said = [counted(now.counts), plural(now.moves, "move"), until].join(" \u00b7 ");
  fill(head, h("strong", { title }, named(title)), h("span.soft", {}, said), paused(context, refresh));
}

function paused({ base, study: now, mayWrite }, refresh) {
  if (!now.paused_since) return null;
  const resume = async () => {
    try {
      await insist(`${base}/resume`, {});
      say("Trials can be asked for again.");
      refresh();
    } catch (wrong) {
      say(wrong.message);
    }
  };
  return h("span.paused", {}, "Paused: nobody is given trials. ", mayWrite && button("Resume", resume));
}
