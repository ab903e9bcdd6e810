// A page with a form and one view per attack: one attack, or two side by side.

import { complain, get, listen, post } from "./api.js";
import { AttackChoice, bindBrush, limits, offerClasses, setLimits } from "./choices.js";
import { JobView } from "./job_view.js";
import { MaskBrush } from "./mask_brush.js";
import { PictureDrop } from "./picture_drop.js";
import { showQueue } from "./queue_list.js";

// suffixes: of the selects of each attack; names: of the jobs in the address of the page.
export function startPage(suffixes, names) {
  const choices = suffixes.map((suffix) => new AttackChoice(suffix));
  const views = names.map(() => new JobView(document.getElementById("jobs")));
  if (views.length === 2) [views[0].chart.peer, views[1].chart.peer] = [views[1].chart, views[0].chart];
  const go = document.getElementById("go");
  const model = document.getElementById("model");
  const brush = new MaskBrush(views[0].stage, () => {});
  const brushes = bindBrush(brush);
  const drop = new PictureDrop((seen, quiet) => {
    go.disabled = false;
    if (quiet) return;
    if (brush.bits && brush.bits.length !== seen.size[1] * seen.size[2]) brush.clear();
    history.replaceState(null, "", location.pathname);
    for (const view of views) view.preview(drop.address, seen).catch(complain);
  });
  offerClasses(model);

  document.getElementById("choices").onsubmit = async (event) => {
    event.preventDefault();
    go.disabled = true;
    brushes.end();
    try {
      const address = new URLSearchParams();
      for (const [index, name] of names.entries()) {
        const fields = { picture: drop.id, model: model.value, ...choices[index].fields, ...limits(), mask: brush.text() };
        address.set(name, (await post("/jobs", fields)).id);
      }
      history.pushState(null, "", `?${address}`);
      await Promise.all(views.map((view, index) => view.open(address.get(names[index]))));
      if (innerWidth < 860) document.getElementById("jobs").scrollIntoView({ behavior: "smooth" });
    } catch (error) {
      complain(error);
    }
    go.disabled = false;
  };

  // The jobs in the address, as the server knows them, and the form as it was.
  async function restore() {
    const address = new URLSearchParams(location.search);
    const ids = names.map((name) => address.get(name));
    const known = await Promise.all(ids.map((id) => id && get(`/jobs/${id}`)));
    known.forEach((job, index) => job && choices[index].set(job.request));
    const first = known.find(Boolean);
    if (!first) return;
    drop.id = first.request.picture;
    model.value = first.request.model;
    setLimits(first.request);
    await Promise.all([drop.look(true), ...views.map((view, index) => ids[index] && view.open(ids[index]))]);
    if (first.size) brush.read(first.request.mask, first.size[1] * first.size[2]);
  }

  addEventListener("popstate", () => {
    const address = new URLSearchParams(location.search);
    if (names.some((name) => address.get(name))) restore().catch(complain);
    else location.reload(); // back to the empty page
  });
  restore()
    .catch(complain)
    .finally(() =>
      listen({
        onJobs(jobs) {
          showQueue(jobs);
          for (const view of views) view.onJobs(jobs);
        },
        onProgress(event) {
          for (const view of views) view.onProgress(event);
        },
      }),
    );
}
