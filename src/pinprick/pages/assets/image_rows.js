// What one attack did to each image of a task, as rows to filter and sort.

import { countText, plural } from "./number_text.js";

export const FILTERS = [
  ["all", "All", () => true],
  ["fooled", "Fooled", (row) => row.status === "fooled"],
  ["not-fooled", "Not fooled", (row) => row.status === "not fooled"],
  ["not-png", "Fooled, but not as PNG", (row) => row.status === "fooled" && row.png === false],
  ["disagree", "Attacks disagree", (row) => row.disagree],
  ["explained", "Explained", (row) => row.explained],
  ["skipped", "Wrong before", (row) => row.status === "skipped"],
  ["error", "Errors", (row) => row.status === "error"],
];

export const ORDERS = [
  ["index", "In order", (row) => row.image],
  ["pixels", "Pixels", (row) => row.pixels],
  ["elements", "Elements", (row) => row.elements],
  ["passes", "Passes", (row) => row.passes],
  ["margin", "Margin", (row) => row.margin],
];

// A shape and a word per outcome, so that no colour is needed.
export const OUTCOMES = {
  fooled: ["●", "fooled"],
  "not-png": ["◐", "fooled, but not as PNG"],
  "not fooled": ["○", "not fooled"],
  skipped: ["–", "met the goal before the attack"],
  error: ["✕", "error"],
};

export function imageRows(gallery, attack) {
  const own = gallery.attacks[attack];
  const text = (number) => (number === null ? null : gallery.texts[number]);
  return gallery.name.flatMap((name, image) => {
    const status = own.status[image];
    if (status === null) return [];
    const forwards = own.forwards[image];
    return [{
      image, attack, name, status,
      picture: gallery.picture[image],
      label: text(gallery.label[image]),
      target: text(gallery.target[image]),
      clean: text(gallery.clean[image]),
      cleanConfidence: gallery.clean_confidence[image],
      adversarial: text(own.adversarial[image]),
      confidence: own.confidence[image],
      remark: text(own.remark[image]),
      png: own.png[image],
      pixels: own.pixels[image],
      elements: own.elements[image],
      forwards,
      backwards: own.backwards[image],
      passes: forwards === null ? null : forwards + own.backwards[image],
      margin: own.margin[image],
      explained: own.explained[image],
      disagree: disagrees(gallery, image),
    }];
  });
}

// Sorted by a key; rows without a value come last in either direction.
export function sortedRows(rows, read, falling) {
  const known = rows.filter((row) => read(row) !== null && read(row) !== undefined);
  const unknown = rows.filter((row) => read(row) === null || read(row) === undefined);
  known.sort((a, b) => (falling ? read(b) - read(a) : read(a) - read(b)) || a.image - b.image);
  return [...known, ...unknown];
}

export function outcome(row) {
  return OUTCOMES[row.status === "fooled" && row.png === false ? "not-png" : row.status];
}

export function prediction(name, confidence) {
  if (name === null) return "no answer";
  return confidence === null ? name : `${name} ${confidence.toFixed(2)}`;
}

export function costLine(row) {
  const parts = [];
  if (row.pixels !== null) parts.push(plural(row.pixels, "pixel"));
  if (row.elements !== null && row.elements !== row.pixels) parts.push(plural(row.elements, "element"));
  if (row.passes !== null && row.passes > 0) parts.push(`${countText(row.passes)} passes`);
  return parts.join(" · ");
}

// Whether one attack fooled the model with this image and another tried and failed.
function disagrees(gallery, image) {
  const found = Object.values(gallery.attacks).map((own) => own.status[image]);
  return found.includes("fooled") && found.includes("not fooled");
}
