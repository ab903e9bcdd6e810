// Needed units against passes: a dot per image, the best so far as a line, a marker per attack.

import { html, onWidth, svg } from "./dom.js";
import { countText, shortCount } from "./number_text.js";
import { axes, hoverBox, legend, MARGIN, plotHeight } from "./plot_frame.js";
import { logScale } from "./scales.js";
import { marker, seriesStyle } from "./series_style.js";

const FEW = 200; // dots of an attack up to which they are strong

// A series is {name, passes, median: [value, low, high], dots: [[passes, units]], line: likewise}.
export function costPlot(host, { series: given, unit, label }) {
  const series = given.map((one, number) => ({ ...one, style: seriesStyle(number) }));
  const hidden = new Set();
  const canvas = html("div", { class: "canvas" });
  const hover = hoverBox(canvas);
  let pointed = null;
  let width = 0;
  const redraw = () => width && draw();
  host.replaceChildren(canvas, legend(series, hidden, redraw, (number) => {
    pointed = number;
    redraw();
  }));
  onWidth(canvas, (now) => {
    width = now;
    draw();
  });
  const largest = (read) => Math.max(1, ...series.flatMap(read).filter(Number.isFinite));
  const mostPasses = largest((one) => [one.passes, ...one.dots.map(([p]) => p), ...one.line.map(([p]) => p)]);
  const mostUnits = largest((one) => [...one.median, ...one.dots.map(([, u]) => u), ...one.line.map(([, u]) => u)]);

  function draw() {
    const height = plotHeight(width);
    const x = logScale(mostPasses * 1.2, MARGIN.left, width - MARGIN.right);
    const y = logScale(mostUnits * 1.1, height - MARGIN.bottom, MARGIN.top + 6);
    const picture = svg("svg", {
      class: "plot", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${label}. The table below has all numbers.`,
    }, axes({ width, height, x, y, xLabel: "passes per image", yLabel: `${unit} needed`, xText: shortCount, yText: shortCount }));
    const shown = series.map((one, number) => [one, number]).filter(([, number]) => !hidden.has(number));
    for (const [one, number] of [...shown].reverse()) picture.append(drawOne(one, number, x, y));
    canvas.querySelector("svg")?.remove();
    canvas.prepend(picture);
  }

  function drawOne(one, number, x, y) {
    const strong = pointed === number;
    const quiet = one.style.rest && !strong;
    const colour = strong && one.style.rest ? "var(--accent)" : one.style.colour;
    const group = svg("g", { class: pointed !== null && !strong ? "faded" : null, "data-series": one.name });
    if (!quiet) {
      const path = one.dots.map(([px, py]) => `M${x(px).toFixed(1)} ${y(py).toFixed(1)}h0`).join("");
      group.append(svg("path", { class: one.dots.length > FEW ? "dots" : "dots few", d: path, stroke: colour }));
    }
    if (one.line.length > 1) {
      const path = one.line.map(([px, py], index) => (index ? `H${x(px).toFixed(1)}V${y(py).toFixed(1)}` : `M${x(px).toFixed(1)} ${y(py).toFixed(1)}`)).join("");
      group.append(svg("path", { class: "curve", d: path, stroke: colour, "stroke-width": quiet ? 1 : 1.6, "stroke-dasharray": one.style.dash }));
    }
    const [value, low, high] = one.median;
    if (value === null || one.passes === null) return group;
    const at = [x(one.passes), y(value)];
    if (low !== null && high !== null) {
      group.append(svg("line", { class: "whisker", x1: at[0], x2: at[0], y1: y(low), y2: y(high), stroke: colour }));
    }
    const point = marker({ ...one.style, colour }, at[0], at[1], quiet ? 4 : 6.5, {
      class: "main", tabindex: 0, role: "img",
      "aria-label": `${one.name}: median ${countText(value)} ${unit}, ${countText(one.passes)} passes per image`,
    });
    const tell = () => hover.show(at[0], at[1], html("strong", {}, one.name),
      html("p", {}, `Median ${countText(value)} ${unit}`, low === null ? "" : ` (95 % interval ${countText(low)} to ${countText(high)})`),
      html("p", {}, `${countText(one.passes)} passes per image`));
    for (const event of ["pointerenter", "focus"]) point.addEventListener(event, tell);
    for (const event of ["pointerleave", "blur"]) point.addEventListener(event, hover.hide);
    group.append(point);
    return group;
  }
}

// The table behind the plot: one row per attack, then the best so far.
export function costTable(series, unit, caption) {
  const rows = series.map((one) => [one.name, "at the end", one.passes, ...one.median]);
  const lines = series.flatMap((one) => one.line.map(([passes, units]) => [one.name, "best so far", passes, units, null, null]));
  return { caption, columns: ["attack", "when", "passes", `median ${unit}`, "95 % low", "95 % high"], rows: [...rows, ...lines] };
}
