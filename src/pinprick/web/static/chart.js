// Changed units of the best image against passes, as a falling staircase in SVG.

const SPACE = "http://www.w3.org/2000/svg";
const PAD = { right: 12, top: 12, bottom: 26 };
const HEIGHT = 190;

function shape(name, attributes, text = "") {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// Pixels on the left of the plot for a number; letters grow with the screen.
function roomFor(text) {
  const letter = 0.78 * parseFloat(getComputedStyle(document.documentElement).fontSize);
  return 12 + 0.66 * letter * Math.max(4, text.length);
}

export class Chart {
  constructor(root, onChoose) {
    this.root = root;
    this.steps = [];
    this.unit = "pixels";
    this.passes = 0;
    this.at = -1;
    this.peer = null; // another chart that has the same scale
    this.svg = shape("svg", { height: HEIGHT, width: "100%" });
    root.replaceChildren(this.svg);
    this.svg.addEventListener("pointermove", (event) => event.buttons && this.choose(event, onChoose));
    this.svg.addEventListener("pointerdown", (event) => this.choose(event, onChoose));
    new ResizeObserver(() => this.draw()).observe(root);
  }

  set(steps, unit, passes, at) {
    Object.assign(this, { steps, unit, passes, at });
    this.draw();
    if (this.peer?.unit === unit) this.peer.draw();
  }

  // Counts of the images that fool, of this chart and of its peer.
  counts() {
    const charts = this.peer?.unit === this.unit ? [this, this.peer] : [this];
    return charts.flatMap(({ steps }) => steps.filter((step) => step.fools).map((step) => Math.max(1, step[this.unit])));
  }

  choose(event, onChoose) {
    if (!this.x) return;
    const passes = this.x.back(event.clientX - this.svg.getBoundingClientRect().left);
    let found = 0;
    this.steps.forEach((step, index) => {
      if (step.forwards <= passes) found = index;
    });
    onChoose(found);
  }

  draw() {
    const width = this.root.clientWidth;
    this.svg.replaceChildren();
    const fooling = this.steps.filter((step) => step.fools);
    const say = (text) =>
      this.svg.append(shape("text", { x: width / 2, y: HEIGHT / 2, class: "empty", "text-anchor": "middle" }, text));
    if (!width || !this.steps.length) return say("count against passes");
    const most = Math.max(1, this.passes, this.peer?.unit === this.unit ? this.peer.passes : 0);
    const counts = this.counts();
    const left = roomFor(Math.max(1, ...counts).toLocaleString("en"));
    this.x = {
      to: (passes) => left + (passes / most) * (width - left - PAD.right),
      back: (pixels) => ((pixels - left) / (width - left - PAD.right)) * most,
    };
    this.svg.append(
      shape("text", { x: width - PAD.right, y: HEIGHT - 6, class: "axis", "text-anchor": "end" }, `${most.toLocaleString("en")} forward passes`),
    );
    if (!fooling.length) return say("no image that fools yet");
    const [low, high] = [Math.min(...counts), Math.max(...counts)];
    const top = high === low ? high * 2 : high;
    const y = (count) =>
      PAD.top + (1 - Math.log(Math.max(1, count) / low) / Math.log(top / low)) * (HEIGHT - PAD.top - PAD.bottom);
    for (const count of new Set([low, high])) {
      this.svg.append(
        shape("line", { x1: left, x2: width - PAD.right, y1: y(count), y2: y(count), class: "grid" }),
        shape("text", { x: left - 8, y: y(count) + 4, class: "axis", "text-anchor": "end" }, count.toLocaleString("en")),
      );
    }
    let path = "";
    fooling.forEach((step, index) => {
      const [px, py] = [this.x.to(step.forwards), y(step[this.unit])];
      path += index ? `H${px}V${py}` : `M${px} ${py}`;
    });
    path += `H${this.x.to(this.passes)}`;
    this.svg.append(shape("path", { d: path, class: "fall" }));
    const chosen = this.steps[this.at];
    if (chosen?.fools) {
      this.svg.append(shape("circle", { cx: this.x.to(chosen.forwards), cy: y(chosen[this.unit]), r: 5, class: "dot" }));
    }
  }
}
