// The table behind a plot: closed at first, with buttons that copy it in three formats.

import { html } from "./dom.js";
import { tableAsCsv, tableAsLatex, tableAsMarkdown } from "./table_formats.js";

const MOST_ROWS = 500; // that are shown; all are copied
const FORMATS = [["CSV", tableAsCsv], ["Markdown", tableAsMarkdown], ["LaTeX", tableAsLatex]];

// `read` gives {columns, rows, caption} when it is needed, as the plot is then.
export function dataTable(read) {
  const said = html("span", { class: "said", role: "status" });
  const body = html("div", { class: "scroll" });
  const buttons = FORMATS.map(([name, format]) =>
    html("button", {
      type: "button",
      onclick: async () => {
        const done = await copyText(format(read()));
        said.textContent = done ? `Copied as ${name}.` : "This browser does not allow copying.";
      },
    }, `Copy ${name}`));
  const panel = html("details", { class: "data" }, html("summary", {}, "Table"),
    html("div", { class: "row" }, ...buttons, said), body);
  panel.addEventListener("toggle", () => panel.open && body.replaceChildren(drawn(read())));
  return {
    element: panel,
    update: () => panel.open && body.replaceChildren(drawn(read())),
  };
}

function drawn({ columns, rows, caption }) {
  const cell = (value) =>
    html("td", { class: typeof value === "number" ? "number" : null },
      value === null || value === undefined ? "" : typeof value === "number"
        ? value.toLocaleString("en", { maximumSignificantDigits: 5 }) : String(value));
  const left = rows.length - MOST_ROWS;
  return html("table", {},
    html("caption", {}, caption + (left > 0 ? ` First ${MOST_ROWS} of ${rows.length} rows.` : "")),
    html("thead", {}, html("tr", {}, ...columns.map((name) => html("th", { scope: "col" }, name)))),
    html("tbody", {}, ...rows.slice(0, MOST_ROWS).map((row) => html("tr", {}, ...row.map(cell)))));
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = html("textarea", { class: "hidden-copy" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
