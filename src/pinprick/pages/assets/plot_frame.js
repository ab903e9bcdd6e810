// What all plots share: axes with labels, a legend of buttons, and a text that follows the pointer.

import { html, svg } from "./dom.js";
import { marker } from "./series_style.js";

export const MARGIN = { left: 54, right: 18, top: 14, bottom: 46 };

export function plotHeight(width) {
  return Math.round(Math.max(240, Math.min(400, 0.5 * width)));
}

export function axes({ width, height, x, y, xLabel, yLabel, xText, yText }) {
  const bottom = height - MARGIN.bottom;
  const group = svg("g", { class: "axes", "aria-hidden": "true" });
  for (const tick of y.ticks) {
    group.append(
      svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }),
      svg("text", { x: MARGIN.left - 10, y: y(tick), "text-anchor": "end", dy: "0.32em" }, yText(tick)));
  }
  let last = -Infinity;
  for (const tick of x.ticks) {
    if (x(tick) - last < 26) continue;
    last = x(tick);
    group.append(
      svg("line", { class: "tick", x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 5 }),
      svg("text", { x: x(tick), y: bottom + 19, "text-anchor": "middle" }, xText(tick)));
  }
  group.append(
    svg("line", { class: "base", x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }),
    svg("text", { class: "name", x: width - MARGIN.right, y: height - 8, "text-anchor": "end" }, xLabel),
    svg("text", { class: "name", x: MARGIN.left, y: 0, dy: "-0.2em", "text-anchor": "start" }, yLabel));
  return group;
}

// A button per series: shows which marker is whose, and hides or shows the series.
export function legend(series, hidden, redraw, point) {
  return html("ul", { class: "legend" }, ...series.map((one, number) => {
    const button = html("button", {
      type: "button",
      "aria-pressed": String(!hidden.has(number)),
      title: `Hide or show ${one.name}`,
      onclick: () => {
        if (!hidden.delete(number)) hidden.add(number);
        button.setAttribute("aria-pressed", String(!hidden.has(number)));
        redraw();
      },
      onmouseenter: () => point(number),
      onmouseleave: () => point(null),
      onfocus: () => point(number),
      onblur: () => point(null),
    }, svg("svg", { viewBox: "-10 -8 20 16", width: 20, height: 16, "aria-hidden": "true" },
      svg("line", { x1: -10, x2: 10, y1: 0, y2: 0, stroke: one.style.colour, "stroke-width": 1.6,
        "stroke-dasharray": one.style.dash }),
      marker(one.style, 0, 0, 4.2)), one.name);
    return html("li", {}, button);
  }));
}

// A box beside the pointer. Its text is also announced to screen readers.
export function hoverBox(host) {
  const box = html("div", { class: "hover", role: "status", hidden: true });
  host.append(box);
  return {
    hide: () => (box.hidden = true),
    show: (x, y, ...content) => {
      box.replaceChildren(...content);
      box.hidden = false;
      const room = host.clientWidth - box.offsetWidth;
      const left = x + 16 > room ? x - 16 - box.offsetWidth : x + 16;
      box.style.left = `${Math.max(0, Math.min(room, left))}px`;
      box.style.top = `${Math.max(0, y - box.offsetHeight / 2)}px`;
    },
  };
}
