// The report: reads the data in the page, draws plots and gallery of the task that is chosen.

import { costPlot, costTable } from "./cost_plot.js";
import { curvePlot, curveTable } from "./curve_plot.js";
import { dataTable } from "./data_table.js";
import { html } from "./dom.js";
import { heatMap, heatTable } from "./heat_map.js";
import { openImage } from "./image_dialog.js";
import { imageGallery } from "./image_gallery.js";
import { openPictures } from "./packed_pictures.js";

const named = (curves) => curves.map((one) => ({ ...one, name: one.attack }));

function startReport() {
  const readText = (name) => document.getElementById(name).textContent;
  const { tasks, transfer, block } = JSON.parse(readText("report-data"));
  const pictures = openPictures(readText, JSON.parse(readText("places")), block);
  const dialog = document.getElementById("image-dialog");
  let gallery = null;

  function show(number) {
    const task = tasks[number];
    for (const part of document.querySelectorAll("[data-task]")) part.hidden = part.dataset.task !== String(number);
    const subject = `${task.model}, ${task.data}, ${task.goal}`;
    table("summary", () => summaryTable(task, subject));
    withUnits("accuracy", (host, unit) => curvePlot(host, {
      series: named(task.accuracy[unit]), xLabel: `${unit} that may change`, yLabel: "robust accuracy",
      label: `Robust accuracy against changed ${unit}: ${subject}`,
    }), (unit) => curveTable(named(task.accuracy[unit]), unit, "robust accuracy", `Robust accuracy at a number of ${unit}: ${subject}.`));
    withUnits("cost", (host, unit) => costPlot(host, {
      series: named(task.cost[unit]), unit, label: `${unit} needed against passes: ${subject}`,
    }), (unit) => costTable(named(task.cost[unit]), unit, `Needed ${unit} and passes per image: ${subject}.`));
    const queries = named(task.queries);
    part("queries").hidden = !queries.length;
    part("no-queries").hidden = queries.length > 0;
    if (queries.length) {
      // one series per attack, so that each has the colour and shape of the other plots
      const series = task.attacks.map(({ attack }) => queries.find((one) => one.name === attack) ?? { name: attack, points: [] });
      curvePlot(slot("queries"), { series, xLabel: "queries", yLabel: "fooling rate", label: `Fooling rate against queries: ${subject}` });
      table("queries", () => curveTable(queries, "queries", "fooling rate", `Fooling rate with a number of queries: ${subject}.`));
    }
    gallery?.close();
    gallery = imageGallery(part("gallery"), {
      task, number, pictures,
      open: (row, rows, change, rowsOf) => openImage(dialog, { row, rows, pictures, change, rowsOf }),
    });
  }

  // A plot in pixels or elements, with a table that follows.
  function withUnits(name, plot, read) {
    let unit = "pixels";
    const draw = () => plot(slot(name), unit);
    const shown = table(name, () => read(unit));
    const buttons = ["pixels", "elements"].map((one) => html("button", {
      type: "button", "aria-pressed": String(one === unit),
      onclick: (event) => {
        unit = one;
        buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === event.currentTarget)));
        draw();
        shown.update();
      },
    }, one));
    part(name).querySelector(".units").replaceChildren(...buttons);
    draw();
  }

  function table(name, read) {
    const made = dataTable(read);
    part(name).querySelector(".table").replaceChildren(made.element);
    return made;
  }

  const chooser = document.getElementById("task");
  chooser?.addEventListener("change", () => show(Number(chooser.value)));
  show(0);
  if (transfer) {
    heatMap(slot("transfer"), transfer);
    table("transfer", () => heatTable(transfer, "Transfer: fooling rate over images that source and victim classify correctly."));
  }
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.documentElement.dataset.ready = "yes";
}

// Every number of the summary, with intervals.
function summaryTable(task, subject) {
  const estimates = ["fooling_rate", "median_pixels", "median_elements"];
  const words = (name) => name.replaceAll("_", " ");
  const counts = ["seeds", "images", "correct", "fooled", "forwards", "backwards", "seconds", "lost_as_png", "errors"];
  return {
    caption: `Attacks on ${subject}. An empty median is infinite.`,
    columns: ["attack", ...estimates.flatMap((name) => [words(name), `${words(name)} 95 % low`, `${words(name)} 95 % high`]), ...counts.map(words)],
    rows: task.attacks.map((line) => [line.attack, ...estimates.flatMap((name) => line[name]), ...counts.map((name) => line[name])]),
  };
}

function part(name) {
  return document.querySelector(`[data-part="${name}"]`);
}

function slot(name) {
  return part(name).querySelector(".slot");
}

startReport();
