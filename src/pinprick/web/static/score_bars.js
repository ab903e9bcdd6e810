// Classes with logit and confidence as bars; the clean ones as a thin line behind.

import { element } from "./api.js";

export class ScoreBars {
  constructor(root) {
    this.root = root;
    this.rows = new Map();
  }

  // scores: what the model says now; before: what it said of the clean image, if known.
  show(scores, before = null) {
    const clean = new Map((before?.classes ?? []).map((one) => [one.index, one]));
    const rows = scores.classes.map((one) => {
      const row = this.rows.get(one.index) ?? this.make(one);
      const was = clean.get(one.index);
      row.classList.toggle("top", one.index === scores.prediction.index);
      row.querySelector(".now").style.inlineSize = `${100 * one.confidence}%`;
      row.querySelector(".was").style.inlineSize = `${100 * (was?.confidence ?? 0)}%`;
      row.querySelector(".share").textContent = percent(one.confidence);
      row.querySelector(".logit").textContent = one.logit.toFixed(2);
      return row;
    });
    this.rows = new Map(scores.classes.map((one, index) => [one.index, rows[index]]));
    this.root.replaceChildren(...rows);
  }

  make(one) {
    return element(
      "div",
      { className: "score" },
      element("span", { className: "name", textContent: one.name, title: one.name }),
      element("span", { className: "logit", title: "logit" }),
      element("span", { className: "share", title: "confidence" }),
      element("span", { className: "bar" }, element("i", { className: "was" }), element("i", { className: "now" })),
    );
  }
}

export function percent(share) {
  return share > 0 && share < 0.001 ? "<0.1 %" : `${(100 * share).toFixed(1)} %`;
}
