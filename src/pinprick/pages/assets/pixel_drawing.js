// One attacked image as pixels: clean, adversarial, and the changed pixels enlarged.

import { unpackChange } from "./packed_pictures.js";

const DENSE = 0.05; // share of changed pixels from which the difference itself is drawn
const INK = 0.06; // share of the area that enlarged pixels may cover
const RINGED = 30; // pixels up to which each gets a ring
const GREY = 128;

// Reads what there is of an image: {width, height, clean, adversarial, changes, explanation}.
// clean and adversarial are ImageData or null. A change is {at, row, column, before, after}, with
// values in 0..255 per channel; before is null if the clean image is not at hand.
export async function readAttacked(pictures, { picture, packed }) {
  const clean = rastered(await pictures.picture(picture));
  const explanation = packed?.explanation ?? null;
  if (!packed) return { ...sizeOf(clean), clean, adversarial: null, changes: [], explanation };
  if (packed.pixels === undefined) {
    const adversarial = rastered(await pictures.picture(packed.picture));
    return { ...sizeOf(adversarial ?? clean), clean, adversarial, changes: different(clean, adversarial), explanation };
  }
  const change = unpackChange(packed);
  const { width, height } = change;
  const base = clean ?? blank(width, height);
  const adversarial = new ImageData(new Uint8ClampedArray(base.data), width, height);
  const changes = listed(change, !packed.no_clean);
  for (const { at, after } of changes) paint(adversarial, at, after);
  return { width, height, clean, adversarial, changes, explanation };
}

// Draws ImageData pixel for pixel.
export function drawPixels(canvas, data) {
  canvas.width = data.width;
  canvas.height = data.height;
  canvas.getContext("2d").putImageData(data, 0, 0);
}

// Draws changed pixels as enlarged squares over a pale copy of the clean image, and says how.
export function drawChanges(canvas, attacked, side) {
  const { width, height, changes } = attacked;
  const scale = Math.max(1, Math.round(side / Math.max(width, height)));
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  if (changes.length > DENSE * width * height) return drawDifference(context, attacked, scale);
  pale(context, attacked.clean, canvas.width, canvas.height);
  const square = scale * Math.max(2, Math.min(Math.sqrt((INK * width * height) / changes.length), Math.min(width, height) / 27));
  for (const { row, column, after } of changes) {
    const [x, y] = [(column + 0.5) * scale, (row + 0.5) * scale];
    context.fillStyle = colour(after);
    context.fillRect(x - square / 2, y - square / 2, square, square);
    context.strokeStyle = "#000";
    context.lineWidth = Math.max(0.5, square / 12);
    context.strokeRect(x - square / 2, y - square / 2, square, square);
    if (changes.length <= RINGED) {
      context.strokeStyle = "#c8381a";
      context.lineWidth = Math.max(1, scale / 4);
      context.beginPath();
      context.arc(x, y, 1.2 * square, 0, 2 * Math.PI);
      context.stroke();
    }
  }
  return changes.length ? "changed pixels, enlarged" : "nothing changed";
}

export function colour(values) {
  const [red, green, blue] = values.length >= 3 ? values : [values[0], values[0], values[0]];
  return `rgb(${Math.round(red)} ${Math.round(green)} ${Math.round(blue)})`;
}

// The values of a pixel; grey images have one.
export function valuesAt(data, at, channels) {
  return Array.from(data.data.slice(4 * at, 4 * at + Math.min(3, channels)));
}

function drawDifference(context, { width, height, changes }, scale) {
  const data = blank(width, height);
  // not Math.max(...changes): a large image has more changes than a function takes arguments
  const largest = changes.reduce((most, { before, after }) => Math.max(most, ...after.map((value, c) => Math.abs(value - (before?.[c] ?? GREY)))), 1);
  for (const { at, before, after } of changes) {
    paint(data, at, after.map((value, c) => GREY + ((value - (before?.[c] ?? GREY)) * (GREY - 1)) / largest));
  }
  const small = document.createElement("canvas");
  drawPixels(small, data);
  context.drawImage(small, 0, 0, width * scale, height * scale);
  return "difference, as strong as it can be shown";
}

function pale(context, clean, width, height) {
  if (clean) {
    const small = document.createElement("canvas");
    drawPixels(small, clean);
    context.drawImage(small, 0, 0, width, height);
    context.globalCompositeOperation = "saturation"; // grey
    context.fillStyle = "#808080";
    context.fillRect(0, 0, width, height);
    context.globalCompositeOperation = "source-over";
  }
  context.fillStyle = "rgb(255 255 255 / 0.72)";
  context.fillRect(0, 0, width, height);
}

function rastered(picture) {
  if (!picture) return null;
  const canvas = document.createElement("canvas");
  canvas.width = picture.width;
  canvas.height = picture.height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(picture.image, picture.left, picture.top, picture.width, picture.height, 0, 0, picture.width, picture.height);
  return context.getImageData(0, 0, picture.width, picture.height);
}

function listed({ width, channels, pixels, before, after }, known) {
  return Array.from(pixels, (at, number) => ({
    at,
    row: Math.floor(at / width),
    column: at % width,
    before: known ? Array.from(before.subarray(number * channels, (number + 1) * channels)) : null,
    after: Array.from(after.subarray(number * channels, (number + 1) * channels), (value) => value / 257),
  }));
}

function different(clean, adversarial) {
  if (!clean || !adversarial) return [];
  const changes = [];
  for (let at = 0; at < clean.width * clean.height; at++) {
    const [before, after] = [valuesAt(clean, at, 3), valuesAt(adversarial, at, 3)];
    if (before.some((value, c) => value !== after[c])) {
      changes.push({ at, row: Math.floor(at / clean.width), column: at % clean.width, before, after });
    }
  }
  return changes;
}

function paint(data, at, values) {
  const three = values.length >= 3 ? values : [values[0], values[0], values[0]];
  three.slice(0, 3).forEach((value, channel) => (data.data[4 * at + channel] = Math.round(value)));
}

function blank(width, height) {
  const data = new ImageData(width, height);
  data.data.fill(GREY);
  for (let at = 3; at < data.data.length; at += 4) data.data[at] = 255;
  return data;
}

function sizeOf(data) {
  return { width: data?.width ?? 32, height: data?.height ?? 32 };
}
