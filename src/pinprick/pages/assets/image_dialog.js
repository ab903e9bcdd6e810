// An image of the gallery in a dialog: the stage, what it took, changed pixels, why, other attacks.

import { html } from "./dom.js";
import { effectBars } from "./effect_bars.js";
import { hold } from "./image_gallery.js";
import { costLine, outcome, prediction } from "./image_rows.js";
import { readAttacked } from "./pixel_drawing.js";
import { pixelStage, valueText } from "./pixel_stage.js";

const MOST_LISTED = 200; // changed pixels in the list
const VIEWS = [["clean", "Clean"], ["changes", "Changes"], ["adversarial", "Adversarial"]];

// Opens `row`, one of `rows`. `change(row)` gives its packed change, `rowsOf(image)` all attacks.
export function openImage(dialog, { row, rows, pictures, change, rowsOf }) {
  const ended = new AbortController();
  const body = html("div", { class: "image" });
  let stage = null;
  let shown = row;
  dialog.replaceChildren(body);
  dialog.addEventListener("close", () => ended.abort(), { once: true });
  hold("f", (held) => stage?.flip(held), ended.signal);
  addEventListener("keydown", (event) => {
    if (/^(INPUT|SELECT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey) return;
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  }, { signal: ended.signal });
  if (!dialog.open) dialog.showModal();
  draw(row);

  function step(by) {
    const at = rows.findIndex((one) => one.image === shown.image);
    const next = rows[at + by];
    if (next) draw(rowsOf(next.image).find((one) => one.attack === shown.attack) ?? next);
  }

  async function draw(now) {
    shown = now;
    const attacked = await readAttacked(pictures, { picture: now.picture, packed: change(now) });
    if (shown !== now) return;
    const groups = attacked.explanation?.groups ?? [];
    const groupOf = new Map(groups.flatMap((group) => group.pixels.map(([r, c]) => [r * attacked.width + c, group.number])));
    const bars = groups.length ? effectBars(attacked.explanation, (number) => stage.highlight(number === null ? [] : pixelsOf(number))) : null;
    const pixelsOf = (number) => groups.find((group) => group.number === number).pixels.map(([r, c]) => r * attacked.width + c);
    stage = pixelStage(attacked, (pixel) => bars?.highlight(groupOf.get(pixel) ?? null));
    const at = rows.findIndex((one) => one.image === now.image);
    body.replaceChildren(
      html("header", {},
        html("div", {}, html("h2", { id: "image-title" }, now.name), html("p", { class: "soft" }, now.attack)),
        html("div", { class: "row" },
          html("span", { class: "soft" }, `${at + 1} of ${rows.length}`),
          html("button", { type: "button", "aria-label": "Previous image", disabled: at <= 0, onclick: () => step(-1) }, "←"),
          html("button", { type: "button", "aria-label": "Next image", disabled: at >= rows.length - 1, onclick: () => step(1) }, "→"),
          html("button", { type: "button", onclick: () => dialog.close() }, "Close"))),
      html("div", { class: "columns" },
        html("div", {}, views(attacked), stage.element),
        html("div", { class: "facts" }, facts(now), bars?.element, pixelList(attacked), others(now))));
  }

  function views(attacked) {
    const known = VIEWS.filter(([key]) => (key === "clean" ? attacked.clean : attacked.adversarial));
    const first = attacked.adversarial ? "adversarial" : "clean";
    const buttons = known.map(([key, name]) => html("button", {
      type: "button", "data-view": key, "aria-pressed": String(key === first),
      onclick: (event) => {
        buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === event.currentTarget)));
        stage.setView(key);
      },
    }, name));
    const flip = html("button", {
      type: "button", class: "flip",
      onpointerdown: () => stage.flip(true), onpointerup: () => stage.flip(false), onpointerleave: () => stage.flip(false),
    }, "Hold to flip ", html("kbd", {}, "F"));
    return html("div", { class: "row choices" }, ...buttons, known.length > 1 ? flip : null);
  }

  function others(now) {
    const every = rowsOf(now.image);
    if (every.length < 2) return null;
    return html("section", {}, html("h3", {}, "Other attacks on this image"),
      html("ul", { class: "others" }, ...every.map((one) => {
        const [mark, words] = outcome(one);
        return html("li", {}, html("button", {
          type: "button", "aria-pressed": String(one.attack === now.attack), onclick: () => draw(one),
        }, html("span", { class: "mark", "aria-hidden": "true" }, mark), html("b", {}, one.attack), html("span", { class: "soft" }, one.pixels === null ? words : costLine(one))));
      })));
  }

  function pixelList({ changes, width }) {
    if (!changes.length) return null;
    const list = changes.slice(0, MOST_LISTED).map((one) => html("tr", {},
      html("td", {}, html("button", { type: "button", class: "link", onclick: () => stage.centre(one.row, one.column), "data-pixel": one.row * width + one.column }, `${one.row}, ${one.column}`)),
      html("td", {}, swatch(one.before), one.before ? valueText(one.before) : "unknown"),
      html("td", {}, swatch(one.after), valueText(one.after))));
    const left = changes.length - MOST_LISTED;
    return html("section", {}, html("h3", {}, "Changed pixels"),
      html("div", { class: "scroll short" }, html("table", { class: "pixels" },
        html("thead", {}, html("tr", {}, ...["row, column", "before", "after"].map((name) => html("th", { scope: "col" }, name)))),
        html("tbody", {}, ...list))),
      left > 0 ? html("p", { class: "soft small" }, `and ${left.toLocaleString("en")} more`) : null);
  }
}

function facts(row) {
  const [mark, words] = outcome(row);
  const lines = [
    ["label", row.label], ["target", row.target],
    ["clean", prediction(row.clean, row.cleanConfidence)],
    ["adversarial", prediction(row.adversarial, row.confidence)],
    ["cost", costLine(row)],
    ["margin", row.margin === null ? null : row.margin.toFixed(3)],
    ["remark", row.remark],
  ];
  return html("section", {},
    html("p", { class: "verdict" }, html("span", { class: "mark", "aria-hidden": "true" }, mark), words),
    html("dl", {}, ...lines.filter(([, text]) => text).flatMap(([name, text]) => [html("dt", {}, name), html("dd", {}, text)])));
}

function swatch(values) {
  const three = values && (values.length >= 3 ? values : [values[0], values[0], values[0]]);
  const box = html("span", { class: "swatch", "aria-hidden": "true" });
  if (three) box.style.background = `rgb(${three.slice(0, 3).map(Math.round).join(" ")})`;
  return box;
}
