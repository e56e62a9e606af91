// An old address, such as study.html#start: goes to where the text of that heading is now. The old
// headings stand on a page that has moved, or are listed, each an empty anchor before its link.
"use strict";

const whole = document.currentScript.hasAttribute("data-whole"); // the page has moved, all of it

function leadOn() {
  const old = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!old) return;
  const link = old.matches("a:empty")
    ? old.parentElement.querySelector(`#${CSS.escape(old.id)} + a.reference.internal`)
    : whole && old.querySelector("p a.reference.internal");
  if (link) location.replace(link.href);
}

addEventListener("DOMContentLoaded", leadOn);
addEventListener("hashchange", leadOn);
