// The gallery of a task: filters, order, and cards that are drawn as they come into view.

import { html } from "./dom.js";
import { imageCard } from "./image_card.js";
import { FILTERS, imageRows, ORDERS, sortedRows } from "./image_rows.js";

const BATCH = 48; // cards that are added at a time

// `task` is {gallery, attacks, images}; `open(row, rows)` shows an image large. Gives {close}.
export function imageGallery(host, { task, number, pictures, open }) {
  const gallery = task.gallery;
  const attacks = task.attacks.map((line) => line.attack);
  const state = { attack: attacks[0], filter: "all", order: "index", falling: false };
  const cards = new Map(); // element -> card
  const ended = new AbortController();
  let rows = [];
  let shown = [];
  const change = (row) => pictures.change(number, row.image, row.attack);

  const inView = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const card = cards.get(target);
      if (card) isIntersecting ? card.show() : card.hide();
    }
  }, { rootMargin: "400px" });
  const atEnd = new IntersectionObserver(([entry]) => entry.isIntersecting && addCards(), { rootMargin: "800px" });

  const grid = html("div", { class: "cards" });
  const end = html("div", { class: "end", "aria-hidden": "true" });
  const count = html("p", { class: "soft count", role: "status" });
  const filters = html("div", { class: "choices", role: "group", "aria-label": "Which images" });
  const order = select("Sort by", ORDERS.map(([key, name]) => [key, name]), (key) => change_({ order: key }));
  const direction = html("button", {
    type: "button", class: "direction", "aria-label": "Turn the order round",
    onclick: () => change_({ falling: !state.falling }),
  });
  const attack = select("Attack", attacks.map((name) => [name, name]), (name) => change_({ attack: name }));
  if (attacks.length < 2) attack.hidden = true;
  host.replaceChildren(
    html("div", { class: "controls" }, attack, filters, html("div", { class: "row sort" }, order, direction)),
    count, grid, end);

  hold("f", (held) => {
    for (const card of cards.values()) card.flip(held);
  }, ended.signal);
  addEventListener("beforeprint", () => cards.forEach((card) => card.show()), { signal: ended.signal });
  change_({});
  atEnd.observe(end);

  function change_(changes) {
    Object.assign(state, changes);
    rows = imageRows(gallery, state.attack);
    const [, , accept] = FILTERS.find(([key]) => key === state.filter);
    const [, , read] = ORDERS.find(([key]) => key === state.order);
    shown = sortedRows(rows.filter(accept), read, state.falling);
    drawFilters();
    direction.textContent = state.falling ? "↓" : "↑";
    direction.title = state.falling ? "Largest first" : "Smallest first";
    const missing = task.images - gallery.name.length;
    const rest = missing > 0 ? ` The report holds ${gallery.name.length.toLocaleString("en")} of ${task.images.toLocaleString("en")} images; plots are over all of them.` : "";
    count.textContent = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} images.${rest}`;
    inView.disconnect();
    cards.clear();
    grid.replaceChildren();
    addCards();
  }

  function addCards() {
    for (const row of shown.slice(cards.size, cards.size + BATCH)) {
      const card = imageCard(row, { pictures, change, open: () => open(row, shown, change, rowsOf) });
      cards.set(card.element, card);
      grid.append(card.element);
      inView.observe(card.element);
      whenIdle(card.load);
    }
  }

  // What all attacks did to an image.
  function rowsOf(image) {
    return attacks.flatMap((name) => imageRows(gallery, name).filter((row) => row.image === image));
  }

  function drawFilters() {
    const focused = document.activeElement?.dataset?.filter;
    filters.replaceChildren(...FILTERS.flatMap(([key, name, accept]) => {
      const found = rows.filter(accept).length;
      if (!found && key !== state.filter && key !== "all") return [];
      return [html("button", {
        type: "button", "data-filter": key, "aria-pressed": String(key === state.filter),
        onclick: () => change_({ filter: key }),
      }, name, html("span", { class: "number" }, found.toLocaleString("en")))];
    }));
    if (focused) filters.querySelector(`[data-filter="${focused}"]`)?.focus();
  }

  return {
    close() {
      ended.abort();
      inView.disconnect();
      atEnd.disconnect();
    },
  };
}

// Calls back with true while a key is held, outside of fields, and with false when it is let go.
export function hold(key, tell, signal) {
  let held = false;
  const set = (now) => {
    if (held !== now) tell((held = now));
  };
  const typing = (event) => /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  const meant = (event) => event.key.toLowerCase() === key && !event.ctrlKey && !event.metaKey && !event.altKey;
  addEventListener("keydown", (event) => meant(event) && !typing(event) && set(true), { signal });
  addEventListener("keyup", (event) => event.key.toLowerCase() === key && set(false), { signal });
  addEventListener("blur", () => set(false), { signal });
}

// When the browser has nothing else to do; Safari cannot say when that is.
function whenIdle(work) {
  (globalThis.requestIdleCallback ?? setTimeout)(work);
}

function select(name, choices, chosen) {
  const box = html("select", { onchange: () => chosen(box.value) },
    ...choices.map(([value, text]) => html("option", { value }, text)));
  return html("label", { class: "select" }, name, box);
}
