// Why the pixels fool: groups on the maps of both classes, and a bar per group and effect.

import { element } from "./api.js";
import { Stage, accent, loadImage } from "./stage.js";

const SHAPES = { obscuring: "circle", leading: "triangle" };

export class WhyView {
  constructor(root) {
    this.root = root;
    this.hovered = -1;
  }

  async show(attack, why) {
    this.groups = why.groups;
    const parts = [
      [`What the model sees of ${why.label_name}, before`, `/jobs/${attack}/clean.png`, "label"],
      [`What it sees of ${why.rival_name}, after`, `/jobs/${attack}/adversarial.png`, "rival"],
    ];
    this.stages = [];
    const figures = await Promise.all(parts.map((part) => this.figure(why, ...part)));
    const bars = element("ol", { className: "groups" }, ...why.groups.map((group, index) => this.bar(group, index)));
    const method = why.method ? ` Maps: ${why.method} at layer ${why.layer}.` : " This model has no maps.";
    this.root.replaceChildren(
      element("h3", { textContent: "Why these pixels" }),
      element("p", {
        className: "sub",
        textContent:
          `Obscuring pixels lower the score of ${why.label_name} (circles, ${why.obscuring.toFixed(2)} in all). ` +
          `Leading pixels raise that of ${why.rival_name} (triangles, ${why.leading.toFixed(2)} in all). ` +
          `Shapley values, ${why.effects}; ${why.passes[0]} + ${why.passes[1]} passes.${method}`,
      }),
      element("div", { className: "maps" }, ...figures),
      bars,
    );
    this.root.hidden = false;
    for (const stage of this.stages) stage.draw();
  }

  async figure(why, caption, url, map) {
    const frame = element("div", { className: "frame" });
    const stage = new Stage(frame);
    this.stages.push(stage);
    stage.layers.push((context, scale, ratio) => this.draw(context, scale, ratio));
    stage.over.addEventListener("pointermove", (event) => {
      const centres = this.groups.map(({ centre: [row, column] }) => ({ row: row - 0.5, column: column - 0.5 }));
      this.hover(stage.nearest(event, centres));
    });
    stage.paint(await loadImage(url));
    if (why.maps.includes(map)) tint(stage, await loadImage(`/jobs/${why.id}/maps/${map}.png`));
    return element("figure", { className: "stage" }, frame, element("figcaption", { textContent: caption }));
  }

  bar(group, index) {
    const most = Math.max(...this.groups.flatMap(({ obscuring, leading }) => [Math.abs(obscuring), Math.abs(leading)]), 1e-9);
    const effect = (name) => {
      const fill = element("i", { className: `${name}${group[name] < 0 ? " against" : ""}` });
      fill.style.inlineSize = `${(100 * Math.abs(group[name])) / most}%`;
      const error = group[`${name}_error`] ? ` ± ${group[`${name}_error`].toFixed(2)}` : "";
      return element("span", { className: "effect" }, element("b", { textContent: name }), element("span", { className: "bar" }, fill), element("span", { className: "logit", textContent: `${group[name].toFixed(2)}${error}` }));
    };
    const count = group.pixels.length;
    const line = element("li", { tabIndex: 0 }, element("span", { className: "name", textContent: `${group.label}, ${count} pixel${count === 1 ? "" : "s"}` }), effect("obscuring"), effect("leading"));
    line.onpointerenter = line.onfocus = () => this.hover(index);
    line.onpointerleave = line.onblur = () => this.hover(-1);
    return line;
  }

  hover(index) {
    if (index === this.hovered) return;
    this.hovered = index;
    for (const stage of this.stages) stage.draw();
    this.root.querySelectorAll(".groups li").forEach((line, number) => line.classList.toggle("hovered", number === index));
  }

  draw(context, scale, ratio) {
    this.groups.forEach((group, index) => {
      const [x, y] = [(group.centre[1] + 0.5) * scale, (group.centre[0] + 0.5) * scale];
      const radius = (index === this.hovered ? 13 : 8) * ratio;
      for (const [colour, width] of [["rgb(0 0 0 / 60%)", 4.5], [index === this.hovered ? "#fff" : accent(), 2.2]]) {
        context.strokeStyle = colour;
        context.lineWidth = width * ratio;
        context.beginPath();
        outline(context, SHAPES[group.label] ?? "square", x, y, radius);
        context.stroke();
      }
    });
  }
}

function outline(context, shape, x, y, radius) {
  if (shape === "circle") context.arc(x, y, radius, 0, 7);
  else if (shape === "square") context.rect(x - radius, y - radius, 2 * radius, 2 * radius);
  else {
    context.moveTo(x, y - radius);
    context.lineTo(x + radius, y + radius * 0.8);
    context.lineTo(x - radius, y + radius * 0.8);
    context.closePath();
  }
}

// Lights the image where the map is high, and darkens it elsewhere.
function tint(stage, map) {
  const canvas = element("canvas", { width: stage.width, height: stage.height });
  const context = canvas.getContext("2d");
  context.drawImage(map, 0, 0);
  const heat = context.getImageData(0, 0, stage.width, stage.height).data;
  const pixels = stage.pixels();
  for (let i = 0; i < heat.length; i += 4) {
    const share = heat[i] / 255;
    const grey = 0.3 * pixels.data[i] + 0.59 * pixels.data[i + 1] + 0.11 * pixels.data[i + 2];
    [255, 190, 60].forEach((glow, channel) => {
      const dim = 0.55 * grey + 0.2 * pixels.data[i + channel];
      pixels.data[i + channel] = dim * (1 - 0.65 * share) + 0.65 * share * glow;
    });
  }
  stage.base.getContext("2d").putImageData(pixels, 0, 0);
}
