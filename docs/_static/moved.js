// An old address, such as study.html#start: goes to where the text of that heading is now.
"use strict";

function leadOn() {
  const head = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const link = head && location.hash && head.querySelector("p a.reference.internal");
  if (link) location.replace(link.href);
}

addEventListener("DOMContentLoaded", leadOn);
addEventListener("hashchange", leadOn);
