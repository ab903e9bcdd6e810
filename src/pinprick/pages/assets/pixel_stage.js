// One image, large: zoom to pixels, read values before and after, flip between clean and adversarial.

import { html } from "./dom.js";
import { drawChanges, drawPixels, valuesAt } from "./pixel_drawing.js";

const GRID = 10; // screen pixels per pixel from which the grid is drawn
const VALUES = 44; // and from which values are written into changed pixels
const LARGEST = 96;

// Gives {element, setView, flip, highlight, centre}. `pointAt(pixel | null)` is told the pixel below.
export function pixelStage(attacked, pointAt) {
  const { width, height, clean, adversarial, changes } = attacked;
  const changed = new Map(changes.map((change) => [change.at, change]));
  const small = { clean: raster(clean), adversarial: raster(adversarial), changes: enlarged(attacked) };
  const state = { view: adversarial ? "adversarial" : "clean", flipped: false, scale: 0, x: 0, y: 0, pixel: null, lit: new Set() };
  const canvas = html("canvas", { class: "stage", tabindex: 0, role: "application", "aria-label": "Image. Arrow keys move over pixels, plus and minus zoom." });
  const readout = html("output", { class: "readout", "aria-live": "polite" }, "Point at a pixel to read its values.");
  const zoom = html("div", { class: "row zoom" },
    html("button", { type: "button", "aria-label": "Zoom out", onclick: () => zoomBy(0.5) }, "−"),
    html("button", { type: "button", onclick: () => fit() }, "Fit"),
    html("button", { type: "button", "aria-label": "Zoom in", onclick: () => zoomBy(2) }, "+"));
  const element = html("div", { class: "stage-box" }, canvas, html("div", { class: "row under" }, zoom, readout));
  let side = 0;

  new ResizeObserver(() => {
    const now = canvas.clientWidth;
    if (!now || now === side) return;
    side = now;
    fit();
  }).observe(canvas);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? 1.25 : 0.8, event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    let [x, y] = [event.clientX, event.clientY];
    const move = (next) => {
      state.x -= (next.clientX - x) / state.scale;
      state.y -= (next.clientY - y) / state.scale;
      [x, y] = [next.clientX, next.clientY];
      draw();
    };
    canvas.addEventListener("pointermove", move);
    const stop = () => canvas.removeEventListener("pointermove", move);
    canvas.addEventListener("pointerup", stop, { once: true });
    canvas.addEventListener("pointercancel", stop, { once: true });
  });
  canvas.addEventListener("pointermove", (event) => pointTo(
    Math.floor(state.y + event.offsetY / state.scale), Math.floor(state.x + event.offsetX / state.scale)));
  canvas.addEventListener("pointerleave", () => pointTo(-1, -1));
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (steps) {
      event.preventDefault();
      const at = state.pixel ?? changes[0]?.at ?? 0;
      const row = Math.max(0, Math.min(height - 1, Math.floor(at / width) + (state.pixel === null ? 0 : steps[0])));
      const column = Math.max(0, Math.min(width - 1, (at % width) + (state.pixel === null ? 0 : steps[1])));
      pointTo(row, column);
    } else if (event.key === "+" || event.key === "=") zoomBy(2);
    else if (event.key === "-") zoomBy(0.5);
    else if (event.key === "0") fit();
  });

  function fit() {
    state.scale = Math.min(side / width, side / height);
    state.x = (width - side / state.scale) / 2;
    state.y = (height - side / state.scale) / 2;
    draw();
  }

  function zoomBy(factor, x = side / 2, y = side / 2) {
    const least = Math.min(side / width, side / height);
    const next = Math.max(least, Math.min(LARGEST, state.scale * factor));
    state.x += x / state.scale - x / next;
    state.y += y / state.scale - y / next;
    state.scale = next;
    if (next === least) return fit();
    draw();
  }

  function centre(row, column) {
    state.scale = Math.max(state.scale, Math.min(LARGEST, VALUES + 8));
    state.x = column + 0.5 - side / 2 / state.scale;
    state.y = row + 0.5 - side / 2 / state.scale;
    pointTo(row, column);
    draw();
  }

  function pointTo(row, column) {
    const inside = row >= 0 && row < height && column >= 0 && column < width;
    const pixel = inside ? row * width + column : null;
    if (pixel === state.pixel) return;
    state.pixel = pixel;
    readout.textContent = inside ? described(row, column, pixel) : "Point at a pixel to read its values.";
    pointAt(pixel);
    draw();
  }

  function described(row, column, pixel) {
    const change = changed.get(pixel);
    const where = `Row ${row}, column ${column}`;
    if (change) return `${where}: before ${change.before ? valueText(change.before) : "unknown"}, after ${valueText(change.after)}`;
    const values = clean ? valuesAt(clean, pixel, changes[0]?.after.length ?? 3) : null;
    return `${where}: unchanged${values ? `, ${valueText(values)}` : ""}`;
  }

  function draw() {
    if (!side) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.height = Math.round(side * ratio);
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.scale(ratio, ratio);
    const view = state.flipped ? (state.view === "clean" ? "adversarial" : "clean") : state.view;
    const { scale } = state;
    const left = (column) => (column - state.x) * scale;
    const top = (row) => (row - state.y) * scale;
    const picture = small[view] ?? small.adversarial ?? small.clean;
    canvas.dataset.shown = view;
    if (picture) context.drawImage(picture, left(0), top(0), width * scale, height * scale);
    if (scale >= GRID) grid(context, left, top);
    if (scale >= VALUES && view !== "changes") values(context, left, top, view);
    for (const at of state.lit) outline(context, left(at % width), top(Math.floor(at / width)), scale, 3);
    if (state.pixel !== null) outline(context, left(state.pixel % width), top(Math.floor(state.pixel / width)), scale, 1.5);
  }

  function grid(context, left, top) {
    context.strokeStyle = "rgb(128 128 128 / 0.35)";
    context.lineWidth = 1;
    context.beginPath();
    for (let column = Math.max(0, Math.floor(state.x)); column <= width && left(column) <= side; column++) {
      context.moveTo(left(column), Math.max(0, top(0)));
      context.lineTo(left(column), Math.min(side, top(height)));
    }
    for (let row = Math.max(0, Math.floor(state.y)); row <= height && top(row) <= side; row++) {
      context.moveTo(Math.max(0, left(0)), top(row));
      context.lineTo(Math.min(side, left(width)), top(row));
    }
    context.stroke();
  }

  function values(context, left, top, view) {
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const { row, column, before, after } of changes) {
      const shown = view === "clean" ? before : after;
      if (!shown) continue;
      const bright = shown.slice(0, 3).reduce((sum, value) => sum + value, 0) / Math.min(3, shown.length);
      context.fillStyle = bright > 128 ? "#000" : "#fff";
      const size = Math.min(13, state.scale / (shown.length + 1.4));
      context.font = `${size}px ui-monospace, monospace`;
      shown.forEach((value, number) => context.fillText(oneValue(value), left(column) + state.scale / 2,
        top(row) + (state.scale * (number + 1)) / (shown.length + 1)));
    }
  }

  return {
    element,
    canvas,
    centre,
    setView: (view) => {
      state.view = view;
      draw();
    },
    flip: (held) => {
      state.flipped = held;
      draw();
    },
    highlight: (pixels) => {
      state.lit = new Set(pixels);
      draw();
    },
  };
}

export function valueText(values) {
  return values.map(oneValue).join(" ");
}

// 8-bit values as they are; values between them with one decimal.
function oneValue(value) {
  return Math.abs(value - Math.round(value)) < 0.05 ? String(Math.round(value)) : value.toFixed(1);
}

// A white line between two black ones is seen on any ground.
function outline(context, x, y, size, width) {
  for (const [colour, thick] of [["#000", width + 2], ["#fff", width]]) {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.strokeRect(x, y, size, size);
  }
}

function raster(data) {
  if (!data) return null;
  const canvas = document.createElement("canvas");
  drawPixels(canvas, data);
  return canvas;
}

function enlarged(attacked) {
  if (!attacked.adversarial) return null;
  const canvas = document.createElement("canvas");
  drawChanges(canvas, attacked, 640);
  return canvas;
}
