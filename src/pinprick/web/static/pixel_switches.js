// The changed pixels: marked on the stage, listed beside it, each switched off and on by a click.

import { complain, element, plural, post } from "./api.js";
import { accent } from "./stage.js";

const LISTED = 300; // pixels in the list; all can be switched on the image

export class PixelSwitches {
  constructor(root, stage, { onAnswer, onDraw, onHover }) {
    Object.assign(this, { root, stage, onAnswer, onDraw, onHover });
    this.pixels = [];
    this.off = new Set();
    this.job = "";
    this.marked = true;
    this.active = true;
    stage.layers.push((context, scale, ratio) => this.draw(context, scale, ratio));
    stage.over.addEventListener("click", (event) => {
      if (!this.active || stage.over.classList.contains("painting")) return;
      const found = stage.nearest(event, this.pixels);
      if (found >= 0) this.toggle(found);
    });
    stage.over.addEventListener("pointermove", (event) => {
      const found = this.active ? stage.nearest(event, this.pixels) : -1;
      stage.over.classList.toggle("pick", found >= 0);
      this.onHover(found >= 0 ? describe(this.pixels[found]) : "");
    });
    root.querySelector(".all-on").onclick = () => this.set([]);
    root.querySelector(".all-off").onclick = () => this.set(this.pixels.keys());
  }

  show(job, pixels) {
    this.job = job;
    this.pixels = pixels;
    this.off = new Set();
    this.root.hidden = !pixels.length;
    this.items = pixels.slice(0, LISTED).map((pixel, index) => {
      const box = element("input", { type: "checkbox", checked: true });
      box.onchange = () => this.toggle(index);
      const item = element("label", { className: "pixel" }, box, swatch(pixel.before), "→", swatch(pixel.after), element("span", { textContent: describe(pixel) }));
      return { box, line: element("li", {}, item) };
    });
    const more = pixels.length > LISTED ? [element("li", { textContent: `and ${pixels.length - LISTED} more on the image` })] : [];
    this.root.querySelector("ul").replaceChildren(...this.items.map((item) => item.line), ...more);
    this.label();
  }

  toggle(index) {
    const off = new Set(this.off);
    off.has(index) ? off.delete(index) : off.add(index);
    this.set(off);
  }

  set(off) {
    this.off = new Set(off);
    this.items.forEach(({ box }, index) => (box.checked = !this.off.has(index)));
    this.label();
    this.onDraw();
    this.ask();
  }

  // One question at a time; the last state is asked for in the end.
  async ask() {
    if (this.asking) return void (this.again = true);
    this.asking = true;
    const job = this.job;
    try {
      const answer = await post(`/jobs/${job}/pixels`, { off: [...this.off] });
      if (job === this.job) this.onAnswer(answer, this.off.size);
    } catch (error) {
      complain(error);
    }
    this.asking = false;
    if (this.again) {
      this.again = false;
      this.ask();
    }
  }

  label() {
    const off = this.off.size ? `, ${this.off.size} switched off` : "";
    this.root.querySelector("summary").textContent = `${plural(this.pixels.length, "pixels")} changed${off}`;
  }

  draw(context, scale, ratio) {
    if (!this.marked || !this.active) return;
    const radius = Math.max(scale * 0.75, 5 * ratio);
    context.lineWidth = 1.5 * ratio;
    for (const [index, { row, column }] of this.pixels.entries()) {
      const [x, y] = [(column + 0.5) * scale, (row + 0.5) * scale];
      const off = this.off.has(index);
      context.setLineDash(off ? [2 * ratio, 2 * ratio] : []);
      for (const [colour, more] of [["rgb(0 0 0 / 45%)", 1.5 * ratio], [off ? "#ccc" : accent(), 0]]) {
        context.strokeStyle = colour;
        context.beginPath();
        context.arc(x, y, radius + more, 0, 7);
        context.stroke();
      }
    }
    context.setLineDash([]);
  }
}

function swatch(values) {
  const [red, green = red, blue = red] = values.map(Math.round);
  const made = element("i", { className: "swatch" });
  made.style.backgroundColor = `rgb(${red} ${green} ${blue})`;
  return made;
}

function describe({ row, column, before, after }) {
  const text = (values) => values.map((value) => +value.toFixed(1)).join(" ");
  return `row ${row}, column ${column}: ${text(before)} → ${text(after)}`;
}
