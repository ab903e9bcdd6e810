// How series are told apart: by colour, by the shape of their marker and by the dashes of the line.

import { svg } from "./dom.js";

const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "plus"];
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 4", "10 4"];

export const COLOURED = SHAPES.length; // further series are thin and grey until they are chosen

export function seriesStyle(number) {
  if (number >= COLOURED) return { colour: "var(--faint)", shape: "dot", dash: "", rest: true };
  return { colour: `var(--series-${number})`, shape: SHAPES[number], dash: DASHES[number] };
}

// A marker of a radius at a place; crosses and pluses are strokes, the others are filled.
export function marker({ shape, colour }, x, y, radius, attributes = {}) {
  const r = radius;
  const paths = {
    square: `M${-r} ${-r}H${r}V${r}H${-r}Z`,
    triangle: `M0 ${-1.2 * r}L${1.15 * r} ${0.85 * r}H${-1.15 * r}Z`,
    diamond: `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0Z`,
    cross: `M${-r} ${-r}L${r} ${r}M${r} ${-r}L${-r} ${r}`,
    plus: `M0 ${-1.2 * r}V${1.2 * r}M${-1.2 * r} 0H${1.2 * r}`,
  };
  const at = { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, ...attributes };
  if (!(shape in paths)) return svg("circle", { r: shape === "dot" ? 0.7 * r : r, fill: colour, ...at });
  const open = shape === "cross" || shape === "plus";
  if (!open) return svg("path", { d: paths[shape], fill: colour, ...at });
  // as a style, so that no rule for filled markers overrides it
  return svg("path", { d: paths[shape], fill: "none", style: `stroke: ${colour}; stroke-width: ${0.55 * r}`, ...at });
}
