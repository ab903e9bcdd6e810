// An image enlarged to its pixels, with marks above it: changed pixels, a mask, a map, groups.

import { element } from "./api.js";

const REACH = 14; // CSS pixels around a click in which a mark is found

export async function loadImage(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  return image;
}

export class Stage {
  constructor(frame) {
    this.base = element("canvas", { className: "base", width: 1, height: 1 });
    this.over = element("canvas", { className: "over", width: 1, height: 1 });
    this.over.setAttribute("role", "img");
    this.over.setAttribute("aria-label", "Image with marks");
    frame.replaceChildren(this.base, this.over);
    this.layers = []; // functions (context, scale) that draw above the image
    this.wanted = 0;
    new ResizeObserver(() => this.draw()).observe(frame);
  }

  get width() {
    return this.base.width;
  }

  get height() {
    return this.base.height;
  }

  // Shows the image at url, unless another was asked for meanwhile.
  async show(url) {
    const number = ++this.wanted;
    const image = await loadImage(url);
    if (number === this.wanted) this.paint(image);
  }

  paint(image) {
    const { width, height } = image;
    if (this.width !== width || this.height !== height) {
      this.base.width = width;
      this.base.height = height;
    }
    this.base.getContext("2d").drawImage(image, 0, 0);
    this.draw();
  }

  pixels() {
    return this.base.getContext("2d").getImageData(0, 0, this.width, this.height);
  }

  draw() {
    const box = this.base.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    this.over.width = Math.max(1, Math.round(box.width * ratio));
    this.over.height = Math.max(1, Math.round(box.height * ratio));
    const context = this.over.getContext("2d");
    const scale = this.over.width / this.width;
    for (const layer of this.layers) layer(context, scale, ratio);
  }

  // The pixel under a pointer, as fractions of rows and columns.
  place(event) {
    const box = this.base.getBoundingClientRect();
    return {
      column: ((event.clientX - box.left) / box.width) * this.width,
      row: ((event.clientY - box.top) / box.height) * this.height,
      perPixel: box.width / this.width,
    };
  }

  // The index of the nearest of some pixels to a pointer; -1 if none is near.
  nearest(event, pixels) {
    const { row, column, perPixel } = this.place(event);
    let found = -1;
    let least = Math.max(REACH, perPixel) / perPixel;
    pixels.forEach((pixel, index) => {
      const away = Math.hypot(pixel.row + 0.5 - row, pixel.column + 0.5 - column);
      if (away < least) [found, least] = [index, away];
    });
    return found;
  }
}

export function accent() {
  return getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
}
