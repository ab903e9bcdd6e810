// Curves of shares against a number, as steps with intervals: robust accuracy, success by queries.

import { html, onWidth, svg } from "./dom.js";
import { percentText, shortCount } from "./number_text.js";
import { axes, hoverBox, legend, MARGIN, plotHeight } from "./plot_frame.js";
import { linearScale, logScale } from "./scales.js";
import { COLOURED, marker, seriesStyle } from "./series_style.js";

const FEW = 3; // series up to which bands are as strong as they can be
const MOST_NAMED = 8; // series that the hover text lists

// Draws into `host`. A series is {name, points: [[x, share, low, high], ...]} with rising x.
export function curvePlot(host, { series: given, xLabel, yLabel, label }) {
  const series = given.map((one, number) => ({ ...one, style: seriesStyle(number) })).filter((one) => one.points.length);
  const hidden = new Set();
  const canvas = html("div", { class: "canvas" });
  const hover = hoverBox(canvas);
  let pointed = null;
  let width = 0;
  let at = null; // the x that is pointed at
  const redraw = () => width && draw();
  const most = Math.max(1, ...series.map((one) => one.points.at(-1)?.[0] ?? 0));
  host.replaceChildren(canvas, legend(series, hidden, redraw, (number) => {
    pointed = number;
    redraw();
  }));
  onWidth(canvas, (now) => {
    width = now;
    draw();
  });

  function draw() {
    const height = plotHeight(width);
    const x = logScale(most * 1.06, MARGIN.left, width - MARGIN.right);
    const y = linearScale(1, height - MARGIN.bottom, MARGIN.top + 6);
    const picture = svg("svg", {
      class: "plot", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0,
      "aria-label": `${label}. The table below has all numbers; left and right arrows read the curve.`,
    }, axes({ width, height, x, y, xLabel, yLabel, xText: shortCount, yText: (share) => `${Math.round(100 * share)} %` }));
    const shown = series.map((one, number) => [one, number]).filter(([, number]) => !hidden.has(number));
    const order = [...shown].sort(([, a], [, b]) => (a === pointed) - (b === pointed) || b - a);
    for (const [one, number] of order) picture.append(curve(one, number, x, y));
    if (at !== null) picture.append(svg("line", { class: "cross", x1: x(at), x2: x(at), y1: y(1), y2: y(0) }));
    picture.addEventListener("pointermove", (event) => {
      const inside = event.clientX - picture.getBoundingClientRect().left;
      point(nearest(Math.max(0, x.invert(inside))), x, picture);
    });
    picture.addEventListener("pointerleave", () => leave());
    picture.addEventListener("blur", () => leave());
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const xs = allXs();
      point(xs[Math.max(0, Math.min(xs.length - 1, xs.indexOf(at ?? xs[0]) + step))], x, picture);
    });
    const focused = canvas.querySelector("svg") === document.activeElement;
    canvas.querySelector("svg")?.remove();
    canvas.prepend(picture);
    if (focused) picture.focus();
  }

  function leave() {
    at = null;
    hover.hide();
    canvas.querySelector(".cross")?.remove();
  }

  function point(value, x, picture) {
    at = value;
    picture.querySelector(".cross")?.remove();
    picture.append(svg("line", { class: "cross", x1: x(value), x2: x(value), y1: MARGIN.top, y2: plotHeight(width) - MARGIN.bottom }));
    const rows = series.filter((_, number) => !hidden.has(number)).slice(0, MOST_NAMED).map((one) => {
      const [, share, low, high] = valueAt(one.points, value) ?? [];
      return html("tr", {}, html("td", {}, sample(one)), html("th", { scope: "row" }, one.name),
        html("td", {}, percentText(share)), html("td", { class: "soft" }, low === null || low === undefined ? "" : `${percentText(low)} to ${percentText(high)}`));
    });
    hover.show(x(value), MARGIN.top + 70, html("strong", {}, `${shortCount(value)} ${xLabel}`), html("table", {}, ...rows));
  }

  function curve(one, number, x, y) {
    const { style } = one;
    const faded = pointed !== null && pointed !== number;
    const strong = pointed === number;
    const colour = strong && style.rest ? "var(--accent)" : style.colour;
    const group = svg("g", { class: faded ? "faded" : null, "data-series": one.name });
    const points = [...one.points, [most * 1.06, ...(one.points.at(-1)?.slice(1) ?? [])]];
    if ((!style.rest || strong) && points[0][2] !== null) {
      group.append(svg("path", { class: `band${strong ? " strong" : series.length > FEW ? " pale" : ""}`, fill: colour, d: band(points, x, y) }));
    }
    group.append(svg("path", {
      class: "curve", d: steps(points, x, y), stroke: colour, "stroke-dasharray": style.dash,
      "stroke-width": style.rest && !strong ? 1 : strong ? 2.6 : 1.8,
    }));
    if (!style.rest || strong) {
      const every = Math.max(1, Math.round(one.points.length / 7));
      one.points.forEach(([px, py], index) => {
        if (index % every === number % every) group.append(marker({ ...style, colour }, x(px), y(py), 3.4));
      });
    }
    return group;
  }

  function allXs() {
    return [...new Set(series.filter((_, n) => !hidden.has(n)).slice(0, COLOURED).flatMap((one) => one.points.map(([px]) => px)))].sort((a, b) => a - b);
  }

  function nearest(value) {
    return allXs().reduce((best, one) => (Math.abs(Math.log1p(one) - Math.log1p(value)) < Math.abs(Math.log1p(best) - Math.log1p(value)) ? one : best), 0);
  }
}

// The table behind curves: one row per point.
export function curveTable(series, xName, yName, caption) {
  return {
    caption,
    columns: ["attack", xName, yName, "95 % low", "95 % high"],
    rows: series.flatMap((one) => one.points.map((point) => [one.name, ...point])),
  };
}

function sample(one) {
  return svg("svg", { viewBox: "-6 -6 12 12", width: 12, height: 12, "aria-hidden": "true" }, marker(one.style, 0, 0, 4));
}

// The last point at or before x, since the curve is a step function.
function valueAt(points, x) {
  let found = null;
  for (const point of points) if (point[0] <= x) found = point;
  return found;
}

function steps(points, x, y) {
  return points.map(([px, py], index) => (index ? `H${x(px).toFixed(1)}V${y(py).toFixed(1)}` : `M${x(px).toFixed(1)} ${y(py).toFixed(1)}`)).join("");
}

function band(points, x, y) {
  const upper = points.map(([px, , , high], index) => (index ? `H${x(px).toFixed(1)}V${y(high).toFixed(1)}` : `M${x(px).toFixed(1)} ${y(high).toFixed(1)}`)).join("");
  // from the right end: the low value of a step holds to the left, up to where the step begins
  const lower = [...points].reverse().map(([px, , low]) => `V${y(low).toFixed(1)}H${x(px).toFixed(1)}`);
  return `${upper}${lower.join("")}Z`;
}
