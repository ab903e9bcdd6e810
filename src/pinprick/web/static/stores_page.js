// The page of stores: leaderboard, cells, and the images of a cell. The store stands in the address.

import { complain, element, get, listen } from "./api.js";
import { showQueue } from "./queue_list.js";

const LISTED = 500; // cells in the table

const find = (id) => document.getElementById(id);
const store = find("store");
const unit = find("unit");
let cells = [];

// A table that scrolls by itself, with its caption above.
function table(columns, rows, caption = "") {
  const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col", textContent: name })));
  const body = rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", { title: cell.textContent ?? cell }, cell))));
  const made = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
  return [element("p", { className: "caption", textContent: caption }), element("div", { className: "scroll" }, made)];
}

const text = (value) => (value === null || value === undefined ? "–" : typeof value === "number" ? value.toLocaleString("en") : String(value));

async function show() {
  if (!store.value) return;
  const query = new URLSearchParams({ store: store.value, unit: unit.value });
  history.replaceState(null, "", `?${query}`);
  find("about").textContent = "Reading the store…";
  find("rows").hidden = true;
  try {
    const [board, found] = await Promise.all([get(`/stores/board?${query}`), get(`/stores/cells?${query}`)]);
    const tables = board.tables.flatMap(({ caption, columns, rows }) => table(columns, rows, caption));
    find("board").replaceChildren(element("h2", { textContent: "Leaderboard" }), ...tables, element("p", { className: "sub", textContent: board.explain }));
    cells = found;
    find("about").textContent = `${cells.length.toLocaleString("en")} cells, ${cells.reduce((sum, cell) => sum + cell.images, 0).toLocaleString("en")} images.`;
    find("cells").hidden = find("report").hidden = false;
    find("report").href = `/stores/report.html?${query}`;
    showCells();
  } catch (error) {
    find("about").textContent = error.message;
    find("board").replaceChildren();
    find("cells").hidden = find("report").hidden = true;
  }
}

function showCells() {
  const words = find("filter").value.toLowerCase().split(/\s+/);
  const chosen = cells.filter((cell) => words.every((word) => `${cell.attack} ${cell.model} ${cell.data} ${cell.goal}`.toLowerCase().includes(word)));
  const rows = chosen.slice(0, LISTED).map((cell) => {
    const open = element("button", { type: "button", textContent: cell.attack });
    open.onclick = () => showRows(cell);
    return [open, cell.model, `${cell.data} ${cell.first}:${cell.last}`, cell.goal.replaceAll("_", " "), text(cell.seed), `${cell.fooled} of ${cell.correct}`, cell.correct ? text(cell[unit.value] ?? "∞") : "–", text(cell.errors)];
  });
  const columns = ["attack", "model", "images", "goal", "seed", "fooled", `median ${unit.value}`, "errors"];
  const more = chosen.length > LISTED ? `The first ${LISTED} of ${chosen.length} cells.` : "";
  document.querySelector("#cells .table").replaceChildren(...table(columns, rows, more));
}

async function showRows(cell) {
  try {
    const rows = await get(`/stores/rows?${new URLSearchParams({ store: store.value, cell: cell.cell })}`);
    const columns = ["image", "label", "target", "outcome", "pixels", "elements", "passes"];
    const lines = rows.map((row) => [
      text(row.index),
      text(row.label),
      text(row.target),
      row.error || (row.skipped ? "already wrong" : row.success ? "fooled" : row.remark || "not fooled"),
      text(row.pixels),
      text(row.elements),
      `${text(row.forwards)} + ${text(row.backwards)}`,
    ]);
    const section = find("rows");
    section.querySelector("h2").textContent = `${cell.attack} on ${cell.model}, ${cell.data} ${cell.first}:${cell.last}`;
    const more = rows.length < cell.images ? `The first ${text(rows.length)} of ${text(cell.images)} images.` : "";
    section.querySelector(".table").replaceChildren(...table(columns, lines, more));
    section.hidden = false;
    section.scrollIntoView({ behavior: "smooth" });
  } catch (error) {
    complain(error);
  }
}

async function start() {
  const { names, folder } = await get("/stores/list");
  store.replaceChildren(...names.map((name) => element("option", { value: name, textContent: name === "." ? "this folder" : name })));
  const address = new URLSearchParams(location.search);
  if (names.includes(address.get("store"))) store.value = address.get("store");
  if (address.get("unit") === "elements") unit.value = "elements";
  if (names.length) await show();
  else find("about").textContent = `No stores in ${folder}. pinprick bench run makes one.`;
}

store.onchange = unit.onchange = show;
find("filter").oninput = showCells;
find("choices").onsubmit = (event) => event.preventDefault();
start().catch(complain);
listen({ onJobs: showQueue });
