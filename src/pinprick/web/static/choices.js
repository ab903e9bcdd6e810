// The form: what an attack can be told, and what the page asks for.

import { element, get } from "./api.js";

const attacks = new Map(JSON.parse(document.getElementById("attacks").textContent).map((one) => [one.name, one]));
const EFFORTS = { published: "as published" };
const target = document.getElementById("target");
const passes = document.getElementById("max-passes");
const chosen = new Map(); // what is known of the attack of each choice

// Selects for one attack; suffix tells those of a comparison apart.
export class AttackChoice {
  constructor(suffix = "") {
    const find = (name) => document.getElementById(`${name}${suffix}`);
    this.attack = find("attack");
    this.effort = find("effort");
    this.unit = find("unit");
    this.attack.addEventListener("change", () => this.fill());
    this.fill();
  }

  fill() {
    const { efforts, units } = attacks.get(this.attack.value);
    this.effort.replaceChildren(...efforts.map((one) => element("option", { value: one, textContent: EFFORTS[one] ?? one })));
    const choices = units.length ? [...units].sort().reverse() : [""];
    this.unit.replaceChildren(...choices.map((one) => element("option", { value: one, textContent: one || "no choice" })));
    this.unit.disabled = !units.length;
    chosen.set(this, attacks.get(this.attack.value));
    const untargeted = [...chosen.values()].find((one) => !one.targeted);
    target.disabled = Boolean(untargeted);
    target.placeholder = untargeted ? `${untargeted.title} takes no target` : "any other class";
  }

  set({ attack, effort, unit }) {
    this.attack.value = attack;
    this.fill();
    if (effort) this.effort.value = effort;
    if (!this.unit.disabled) this.unit.value = unit;
  }

  get fields() {
    return { attack: this.attack.value, effort: this.effort.value, unit: this.unit.value };
  }
}

export function limits() {
  return { target: target.disabled ? "" : target.value, max_passes: passes.value ? Math.round(Number(passes.value)) : null };
}

export function setLimits(request) {
  target.value = request.target;
  passes.value = request.max_passes ?? "";
}

// Fills the list of classes when the target is about to be written.
export function offerClasses(model) {
  let filled = "";
  target.addEventListener("focus", async () => {
    if (filled === model.value) return;
    filled = model.value;
    const names = await get(`/classes?model=${encodeURIComponent(filled)}`).catch(() => []);
    const options = ["least-likely", ...names].map((value) => element("option", { value }));
    document.getElementById("classes").replaceChildren(...options);
  });
}

// Connects the buttons of the mask to a brush.
export function bindBrush(brush) {
  const modes = { paint: document.getElementById("paint"), erase: document.getElementById("erase") };
  const show = () => {
    for (const [mode, button] of Object.entries(modes)) button.setAttribute("aria-pressed", String(brush.mode === mode));
  };
  for (const [mode, button] of Object.entries(modes)) {
    button.onclick = () => {
      brush.setMode(mode);
      show();
    };
  }
  document.getElementById("everywhere").onclick = () => brush.clear();
  document.getElementById("brush").oninput = (event) => (brush.size = Number(event.target.value));
  return {
    end() {
      brush.setMode(brush.mode);
      show();
    },
  };
}
