// The transfer matrix as a heat map: a row per source, a column per victim.

import { html, onWidth, svg } from "./dom.js";
import { percentText } from "./number_text.js";
import { hoverBox } from "./plot_frame.js";

const ROW = 34;
const HEAD = 96;

// {victims, sources: [[attack, model, data, goal]], cells: [[{rate, images, floor} | null]]}
export function heatMap(host, { victims, sources, cells }) {
  const canvas = html("div", { class: "canvas scroll" });
  const hover = hoverBox(canvas);
  host.replaceChildren(canvas);
  onWidth(canvas, (width) => {
    const left = Math.min(300, Math.max(150, 0.34 * width));
    const cell = Math.max(74, Math.min(150, (width - left - 8) / victims.length));
    const whole = left + cell * victims.length + 8;
    const height = HEAD + ROW * sources.length + 8;
    const picture = svg("svg", {
      class: "plot heat", width: whole, height, viewBox: `0 0 ${whole} ${height}`, role: "img",
      "aria-label": "Transfer: fooling rate per source and victim. The table below has all numbers.",
    });
    victims.forEach((victim, column) => picture.append(
      svg("text", { transform: `translate(${left + cell * (column + 0.5)} ${HEAD - 12}) rotate(-24)` }, short(victim, 24))));
    sources.forEach(([attack, model], row) => {
      const top = HEAD + ROW * row;
      picture.append(svg("text", { x: left - 12, y: top + ROW / 2, dy: "0.32em", "text-anchor": "end" }, short(`${attack} on ${model}`, Math.round(left / 6.6))));
      cells[row].forEach((one, column) => picture.append(square(one, row, column, left + cell * column, top, cell)));
    });
    canvas.querySelector("svg")?.remove();
    canvas.prepend(picture);
  });

  function square(one, row, column, x, y, width) {
    const [rate, low, high] = one?.rate ?? [null];
    const group = svg("g", { tabindex: one ? 0 : null, role: "img", "aria-label": `${sources[row][0]} on ${sources[row][1]} to ${victims[column]}: ${percentText(rate)}` },
      svg("rect", { x: x + 1, y: y + 1, width: width - 2, height: ROW - 2, class: "cell", "fill-opacity": rate === null ? 0 : 0.06 + 0.8 * rate }),
      svg("text", { x: x + width / 2, y: y + ROW / 2, dy: "0.32em", "text-anchor": "middle", class: rate > 0.6 ? "on-dark" : null }, percentText(rate)));
    if (!one) return group;
    const tell = () => hover.show(x + width, y + ROW / 2, html("strong", {}, `${sources[row].slice(0, 2).join(" on ")} → ${victims[column]}`),
      html("p", {}, `${percentText(rate)} of ${one.images} images (95 % interval ${percentText(low)} to ${percentText(high)})`),
      html("p", { class: "soft" }, `Clean error of the victim: ${percentText(one.floor)}`));
    for (const event of ["pointerenter", "focus"]) group.addEventListener(event, tell);
    for (const event of ["pointerleave", "blur"]) group.addEventListener(event, hover.hide);
    return group;
  }
}

export function heatTable({ victims, sources, cells }, caption) {
  return {
    caption,
    columns: ["attack", "source", "data", "goal", "victim", "fooling rate", "95 % low", "95 % high", "images", "clean error"],
    rows: sources.flatMap((source, row) => cells[row].flatMap((one, column) =>
      one ? [[...source, victims[column], ...one.rate, one.images, one.floor]] : [])),
  };
}

function short(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
