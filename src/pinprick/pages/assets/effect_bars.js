// The effects of groups of changed pixels as bars: obscuring the label, leading to the rival.

import { html, svg } from "./dom.js";

const WIDTH = 420;
const MIDDLE = 84;
const ROW = 40;

// `point(number)` is told which group is pointed at, or null. Gives {element, highlight}.
export function effectBars(explanation, point) {
  const { groups, label, rival } = explanation;
  const values = groups.flatMap((group) => [group.obscuring, group.leading]);
  const [least, most] = [Math.min(0, ...values), Math.max(1e-9, ...values)];
  const perLogit = (WIDTH - MIDDLE - 56) / (most - least);
  const zero = MIDDLE - least * perLogit;
  const height = ROW * groups.length + 4;
  const picture = svg("svg", {
    class: "effects", viewBox: `0 0 ${WIDTH} ${height}`, role: "list",
    "aria-label": `Effects of ${groups.length} groups of changed pixels, the largest first`,
  }, svg("defs", {}, svg("pattern", { id: "hatch", width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 4, height: 4, class: "hatch-ground" }), svg("line", { x1: 0, x2: 0, y1: 0, y2: 4, class: "hatch-line" }))),
    svg("line", { class: "base", x1: zero, x2: zero, y1: 0, y2: height }));
  const rows = new Map();
  groups.forEach((group, at) => {
    const y = ROW * at + 4;
    const row = svg("g", {
      class: "group", role: "listitem", tabindex: 0, "data-group": group.number,
      "aria-label": `Group ${group.number}, ${group.pixels.length} pixels, ${group.kind}: obscuring ${group.obscuring.toFixed(2)}, leading ${group.leading.toFixed(2)}`,
    },
      svg("rect", { class: "hit", x: 0, y: y - 3, width: WIDTH, height: ROW - 2 }),
      svg("text", { x: 0, y: y + 11 }, `group ${group.number}`),
      svg("text", { x: 0, y: y + 27, class: "soft" }, `${group.pixels.length} px`),
      bar("obscuring", group.obscuring, y), bar("leading", group.leading, y + 16));
    for (const event of ["pointerenter", "focus"]) row.addEventListener(event, () => point(group.number));
    for (const event of ["pointerleave", "blur"]) row.addEventListener(event, () => point(null));
    rows.set(group.number, row);
    picture.append(row);
  });

  function bar(kind, value, y) {
    const [from, to] = [zero, zero + value * perLogit];
    return svg("g", { class: kind },
      svg("rect", { x: Math.min(from, to), y, width: Math.max(0.5, Math.abs(to - from)), height: 12 }),
      svg("text", { x: Math.max(from, to) + 6, y: y + 10.5, class: "value" }, `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`));
  }

  const element = html("section", { class: "explanation" },
    html("h3", {}, "Why these pixels"),
    html("p", { class: "soft" },
      key("obscuring"), `hides ${label}: ${signed(explanation.obscuring)}`, html("br"),
      key("leading"), `points to ${rival}: ${signed(explanation.leading)}`),
    picture,
    html("p", { class: "soft small" }, `Shapley values, in logits, ${explanation.method}. Point at a bar to see its pixels, or at a pixel to see its bar.`));
  return {
    element,
    highlight: (number) => rows.forEach((row, own) => row.classList.toggle("on", own === number)),
  };
}

function key(kind) {
  return svg("svg", { class: "effects key", width: 14, height: 10, "aria-hidden": "true" }, svg("g", { class: kind }, svg("rect", { width: 14, height: 10 })));
}

function signed(value) {
  return `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
}
