// The figure of understand/weights.html: weights of fifty draws of N(0, 1) for a Gaussian that the reader moves.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 640, HEIGHT = 240, BOTTOM = 24, SPAN = 4;
  const START = { mean: 1.5, std: 0.7 };

  // Weights [N] of draws of N(0, 1) for N(mean, std), in logs until the last moment.
  function weights(drawn, mean, std) {
    const log = drawn.map((x) => (x * x) / 2 - ((x - mean) / std) ** 2 / 2 - Math.log(std));
    return log.map(Math.exp);
  }

  const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);
  const density = (x, mean, std) =>
    Math.exp(-(((x - mean) / std) ** 2) / 2) / (std * Math.sqrt(2 * Math.PI));
  const across = (x) => ((x + SPAN) / (2 * SPAN)) * WIDTH;
  const up = (share) => (HEIGHT - BOTTOM) * (1 - Math.min(share, 1));

  function drawnIn(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return parent.appendChild(made);
  }

  function curve(mean, std) {
    const points = Array.from({ length: 321 }, (_, i) => (i / 320) * 2 * SPAN - SPAN);
    const height = (x) => up(density(x, mean, std) / 2); // a scale of its own, on which all fit
    return points.map((x) => `${across(x).toFixed(1)},${height(x).toFixed(1)}`).join(" ");
  }

  function axis(svg) {
    drawnIn("line", { x1: 0, x2: WIDTH, y1: up(0), y2: up(0), class: "axis" }, svg);
    for (let x = -3; x <= 3; x++)
      drawnIn("text", { x: across(x), y: HEIGHT - 6, "text-anchor": "middle" }, svg).textContent = x;
  }

  function slider(place, name, words, low, high, changed) {
    const label = place.appendChild(document.createElement("label"));
    const input = document.createElement("input");
    Object.assign(input, { type: "range", min: low, max: high, step: 0.05, value: START[name], name });
    const value = document.createElement("output");
    label.append(`${words} `, input, value);
    input.addEventListener("input", changed);
    return { input, value };
  }

  function build(place) {
    const drawn = place.dataset.drawn.split(/\s+/).map(Number);
    const svg = drawnIn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, place);
    axis(svg);
    drawnIn("polyline", { points: curve(0, 1), class: "proposal" }, svg);
    const target = drawnIn("polyline", { class: "target" }, svg);
    const sticks = drawn.map((x) =>
      drawnIn("line", { x1: across(x), x2: across(x), y1: up(0), class: "share" }, svg));
    const mean = slider(place, "mean", "Mean", -3, 3, show);
    const std = slider(place, "std", "Standard deviation", 0.2, 2, show);
    const said = place.appendChild(document.createElement("p"));
    said.setAttribute("aria-live", "polite");

    function show() {
      const [m, s] = [Number(mean.input.value), Number(std.input.value)];
      const w = weights(drawn, m, s), all = sum(w), largest = Math.max(...w) / all;
      const worth = all ** 2 / sum(w.map((x) => x * x));
      mean.value.textContent = m.toFixed(2);
      std.value.textContent = s.toFixed(2);
      target.setAttribute("points", curve(m, s));
      sticks.forEach((stick, n) => stick.setAttribute("y2", up(w[n] / all)));
      said.textContent = `Largest share: ${(100 * largest).toFixed(1)} %. ` +
        `Effective sample size: ${worth.toFixed(2)} of ${drawn.length}.`;
      svg.setAttribute("aria-label", `Two bell curves and the share of each sample. ${said.textContent}`);
    }
    show();
  }

  const place = document.getElementById("weights");
  document.querySelectorAll("img[src*='weights-']").forEach((still) => still.remove());
  build(place);
})();
