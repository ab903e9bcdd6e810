// A card of the gallery: clean image, changed pixels enlarged, adversarial image, and what it took.

import { html } from "./dom.js";
import { costLine, outcome, prediction } from "./image_rows.js";
import { drawChanges, drawPixels, readAttacked } from "./pixel_drawing.js";

const SIDE = 176; // pixels of the enlarged drawing

// Gives {element, load, show, hide, flip}. Pixels are drawn by show() and forgotten by hide().
// After load(), show() draws without delay: printing does not wait for pictures to be decoded.
export function imageCard(row, { pictures, change, open }) {
  const [mark, words] = outcome(row);
  const panels = ["clean", "changed", "adversarial"].map((name) =>
    html("canvas", { class: name, width: 1, height: 1, role: "img", "aria-label": `${name} image` }));
  const [clean, changed, adversarial] = panels;
  const before = prediction(row.clean, row.cleanConfidence);
  const after = prediction(row.adversarial, row.confidence);
  const element = html("button", {
    type: "button", class: `card ${row.status.replace(" ", "-")}`, "data-image": row.image,
    "aria-label": `${row.name}: ${words}. ${costLine(row)}. ${before} became ${after}. Open.`,
    onclick: () => open(row),
  },
    html("span", { class: "panels" }, ...panels),
    html("span", { class: "outcome" }, html("span", { class: "mark", "aria-hidden": "true" }, mark), words),
    html("span", { class: "cost" }, row.status === "error" ? row.remark : costLine(row)),
    html("span", { class: "classes" }, row.status === "error" ? "" : row.status === "fooled" ? `${before} → ${after}` : before),
    html("span", { class: "name" }, row.name));
  let attacked = null;
  let wanted = false;

  function load() {
    pictures.picture(row.picture);
    pictures.picture(change(row)?.picture);
  }

  async function show() {
    wanted = true;
    const found = await readAttacked(pictures, { picture: row.picture, packed: change(row) });
    if (!wanted) return;
    attacked = found;
    if (found.clean) drawPixels(clean, found.clean);
    else element.classList.add("no-clean");
    if (found.adversarial) {
      drawPixels(adversarial, found.adversarial);
      drawChanges(changed, found, SIDE);
    } else element.classList.add("no-adversarial");
  }

  function hide() {
    wanted = false;
    if (attacked && attacked.width <= 64) return; // small ones cost nothing
    attacked = null;
    for (const panel of panels) panel.width = panel.height = 1;
  }

  function flip(toClean) {
    const shown = toClean ? attacked?.clean : attacked?.adversarial;
    if (shown && attacked.adversarial) drawPixels(adversarial, shown);
    element.classList.toggle("flipped", Boolean(toClean && shown));
  }

  return { element, load, show, hide, flip };
}
