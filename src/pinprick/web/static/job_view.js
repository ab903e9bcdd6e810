// One attack on the page: its image, its fall against passes, its scores, pixels and reasons.

import { complain, get, plural, post } from "./api.js";
import { Chart } from "./chart.js";
import { PixelSwitches } from "./pixel_switches.js";
import { ScoreBars, percent } from "./score_bars.js";
import { Stage, loadImage } from "./stage.js";
import { WhyView } from "./why_view.js";

const LIVE = 300; // milliseconds between two images of a running attack
const OVER = ["done", "stopped", "failed"];

export class JobView {
  constructor(parent) {
    const copy = document.getElementById("job-view").content.cloneNode(true);
    this.root = copy.querySelector(".job");
    parent.append(copy);
    this.find = (selector) => this.root.querySelector(selector);
    this.id = "";
    this.view = "adversarial";
    this.steps = [];
    this.stage = new Stage(this.find(".frame"));
    this.chart = new Chart(this.find(".plot"), (at) => this.moveTo(at));
    this.scores = new ScoreBars(this.find(".scores"));
    this.reasons = new WhyView(this.find(".reasons"));
    this.switches = new PixelSwitches(this.find(".pixels"), this.stage, {
      onAnswer: (answer, off) => this.answered(answer, off),
      onDraw: () => this.render(),
      onHover: (text) => (this.find(".hover").textContent = text),
    });
    this.slider = this.find(".effort input");
    this.slider.oninput = () => this.moveTo(Number(this.slider.value));
    this.find(".marks").onchange = (event) => {
      this.switches.marked = event.target.checked;
      this.stage.draw();
    };
    this.find(".stop").onclick = () => post(`/jobs/${this.id}/stop`).catch(complain);
    this.find(".why").onclick = () => this.askWhy();
    for (const button of this.root.querySelectorAll("[data-view]")) {
      button.onclick = () => this.setView(button.dataset.view);
    }
    this.layout();
    this.headline("Drop a picture", "Then choose what attacks it, and watch the changed pixels become fewer.");
  }

  // Before a run: the picture as the model sees it.
  async preview(url, seen) {
    this.id = "";
    this.why = "";
    this.doc = null;
    this.steps = [];
    this.setView("clean", false);
    this.switches.show("", []);
    this.find(".reasons").hidden = true;
    this.layout();
    this.headline(`${seen.prediction.name}, ${percent(seen.confidence)}`, "What the model sees. Press the button to attack it.");
    this.scores.show(seen);
    this.root.classList.add("seen");
    await this.stage.show(url);
  }

  async open(id) {
    this.id = id;
    this.why = "";
    this.clean = null;
    this.find(".reasons").hidden = true;
    Object.assign(this.find(".why"), { disabled: false, textContent: "Why?", title: "" });
    this.setView("adversarial", false);
    await this.reload();
  }

  async reload() {
    const id = this.id;
    const doc = await get(`/jobs/${id}`);
    if (id !== this.id) return;
    this.doc = doc;
    this.steps = doc.steps.map(readStep);
    this.at = this.steps.length - 1;
    if (doc.size) this.clean = await loadImage(`/jobs/${id}/clean.png`);
    if (id !== this.id) return;
    this.switches.show(id, doc.changed);
    this.answer = null;
    this.layout();
    await this.render();
  }

  // The list of jobs has changed.
  onJobs(jobs) {
    const own = jobs.find((job) => job.id === this.id);
    if (own && this.doc && (own.state !== this.doc.state || own.waits !== this.doc.waits)) {
      this.doc.waits = own.waits;
      if (own.state !== this.doc.state) this.reload().catch(complain);
      else this.layout();
    }
    const why = jobs.find((job) => job.kind === "why" && job.of === this.id);
    if (why && OVER.includes(this.doc?.state)) this.onWhy(why).catch(complain);
  }

  onProgress(event) {
    if (event.id !== this.id || !this.doc) return;
    const following = this.at === this.steps.length - 1;
    const last = this.steps.at(-1)?.number ?? -1;
    this.steps.push(...event.steps.map(readStep).filter((step) => step.number > last));
    Object.assign(this.doc, { forwards: event.forwards, backwards: event.backwards, seconds: event.seconds });
    if (following) this.at = this.steps.length - 1;
    this.layout();
    if (following && event.steps.length && this.view === "adversarial") this.renderSoon();
  }

  moveTo(at) {
    this.at = at;
    this.layout();
    this.render();
  }

  setView(view, render = true) {
    this.view = view;
    for (const button of this.root.querySelectorAll("[data-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.view === view));
    }
    if (render) this.render();
  }

  // While an attack runs, a few images per second are enough.
  renderSoon() {
    this.soon ??= setTimeout(() => {
      this.soon = null;
      this.render();
    }, LIVE);
  }

  // Draws the chosen image; several calls during one are done as one after it.
  async render() {
    if (!this.steps.length || !this.id) return;
    if (this.rendering) return void (this.renderAgain = true);
    this.rendering = true;
    try {
      await this.paint();
    } catch (error) {
      if (!this.renderAgain) console.warn(error); // a step may be dropped while it is fetched
    }
    this.rendering = false;
    if (this.renderAgain) {
      this.renderAgain = false;
      await this.render();
    }
  }

  async paint() {
    const { id, at, view } = this;
    const step = this.steps[at];
    const isLast = at === this.steps.length - 1;
    this.clean ??= await loadImage(`/jobs/${id}/clean.png`);
    const image = view === "clean" ? this.clean : await loadImage(`/jobs/${id}/steps/${step.number}.png`);
    if (id !== this.id) return;
    this.showScores(step);
    this.switches.active = isLast;
    this.stage.paint(image);
    if (isLast && view !== "clean") {
      const context = this.stage.base.getContext("2d");
      for (const index of this.switches.off) {
        const { row, column } = this.switches.pixels[index];
        context.drawImage(this.clean, column, row, 1, 1, column, row, 1, 1);
      }
    }
    if (view === "change") this.showChange();
  }

  // What the model says of the image that is shown; of the last one it is known in the end.
  async showScores(step) {
    const { id } = this;
    const known = () => this.at === this.steps.length - 1 && this.doc.outcome.after;
    if (!known()) {
      const said = await get(`/jobs/${id}/steps/${step.number}.json`).catch(() => null); // a step may be dropped
      if (said && id === this.id && !known()) this.scores.show(said, this.doc.outcome.before);
    } else this.scores.show(this.answer ?? this.doc.outcome.after, this.doc.outcome.before);
  }

  // Leaves the changed pixels as they are, and the rest faint.
  showChange() {
    const now = this.stage.pixels();
    this.stage.paint(this.clean);
    const before = this.stage.pixels().data;
    for (let i = 0; i < before.length; i += 4) {
      const same = [0, 1, 2].every((channel) => now.data[i + channel] === before[i + channel]);
      if (same) now.data[i + 3] = 36;
    }
    const context = this.stage.base.getContext("2d");
    context.clearRect(0, 0, this.stage.width, this.stage.height);
    context.putImageData(now, 0, 0);
    this.stage.draw();
  }

  answered(answer, off) {
    this.answer = off ? answer : null;
    this.scores.show(answer, this.doc.outcome.before);
    if (!off) return this.layout();
    const said = `${answer.prediction.name}, ${percent(answer.confidence)}`;
    const kept = this.switches.pixels.length - off;
    const verdict = answer.fools ? "Still fooled" : "No longer fooled";
    this.headline(said, `${verdict} with ${plural(kept, "pixels")}; margin ${answer.margin.toFixed(3)}.`);
  }

  async askWhy() {
    this.find(".why").disabled = true;
    try {
      await post(`/jobs/${this.id}/why`);
    } catch (error) {
      complain(error);
      this.find(".why").disabled = false;
    }
  }

  async onWhy(job) {
    const button = this.find(".why");
    button.disabled = job.state === "waiting" || job.state === "running" || job.state === "done";
    button.textContent = button.disabled && job.state !== "done" ? "Looking for reasons…" : "Why?";
    if (job.state === "failed") button.title = job.error;
    if (job.state !== "done" || this.why === job.id) return;
    this.why = job.id;
    const doc = await get(`/jobs/${job.id}`);
    if (this.why === job.id) await this.reasons.show(job.of, doc);
  }

  headline(text, sub) {
    this.find(".caption").textContent = this.doc?.title ?? "";
    this.find("h2").textContent = text;
    this.find(".sub").textContent = sub;
  }

  layout() {
    const { doc, steps } = this;
    const over = Boolean(doc) && OVER.includes(doc.state);
    const found = over && Boolean(doc.outcome.after);
    this.root.dataset.state = doc?.state ?? "preview";
    this.find(".stop").hidden = !doc || over;
    for (const link of this.root.querySelectorAll("[data-file]")) {
      link.hidden = !found;
      if (found) link.href = `/jobs/${this.id}/${link.dataset.file}`;
    }
    this.find(".why").hidden = !found || !doc.changed.length;
    this.find(".effort").hidden = steps.length < 2;
    this.slider.max = String(Math.max(0, steps.length - 1));
    this.slider.value = String(this.at ?? 0);
    const unit = doc?.request.unit ?? "pixels";
    this.chart.set(steps, unit, doc?.forwards ?? 0, this.at);
    const step = steps[this.at];
    if (step) {
      const count = step.fools ? plural(step[unit], unit) : `not fooled, margin ${step.margin?.toFixed(2) ?? "unknown"}`;
      this.find(".effort output").textContent = `${step.forwards.toLocaleString("en")} forward passes: ${count}`;
    }
    // Screen readers hear the end alone: a running count changes several times per second.
    this.find(".headline").setAttribute("aria-live", doc && !over ? "off" : "polite");
    if (doc) this.headline(...describe(doc, steps.at(-1), unit));
  }
}

function readStep([number, forwards, backwards, margin, pixels, elements, fools]) {
  return { number, forwards, backwards, margin, pixels, elements, fools };
}

// Headline and second line of an attack.
function describe(doc, last, unit) {
  const cost = `${doc.forwards.toLocaleString("en")} + ${doc.backwards.toLocaleString("en")} passes, ${doc.seconds.toFixed(1)} s`;
  if (doc.state === "waiting") return ["Waiting", doc.waits > 1 ? `${plural(doc.waits - 1, "jobs")} before it.` : "It is next."];
  if (doc.state === "failed") return ["Failed", doc.error];
  const outcome = doc.outcome;
  if (doc.state === "running" || !outcome.after) {
    if (doc.state === "stopped") return ["Stopped", "It was stopped before it found anything."];
    if (!last) return ["Starting", doc.title];
    return [last.fools ? `${plural(last[unit], unit)} so far` : "Not fooled yet", cost];
  }
  const stopped = doc.state === "stopped" ? "Stopped, best so far. " : "";
  if (outcome.skipped) return ["Nothing to do", "The picture is in the target class already."];
  if (!outcome.success) return [`Not fooled: ${outcome.remark || "not found"}`, `${stopped}${cost}`];
  const share = unit === "pixels" ? outcome.l0_pixels_percent : outcome.l0_elements_percent;
  const count = unit === "pixels" ? outcome.l0_pixels : outcome.l0_elements;
  const png = outcome.survives_8bit ? "" : " It does not fool as a PNG.";
  return [
    `${plural(count, unit)}: ${outcome.clean.name} → ${outcome.adversarial.name}`,
    `${stopped}${share < 0.01 ? "<0.01" : share.toFixed(2)} % of the image, ${percent(outcome.after.confidence)} sure. ${cost}.${png}`,
  ];
}
