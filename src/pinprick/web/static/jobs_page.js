// A page with a form and one view per attack: one attack, or two side by side.

import { complain, listen, post } from "./api.js";
import { AttackChoice, bindBrush, limits, offerClasses, setLimits } from "./choices.js";
import { JobView } from "./job_view.js";
import { MaskBrush } from "./mask_brush.js";
import { PictureDrop } from "./picture_drop.js";
import { showQueue } from "./queue_list.js";

// suffixes: of the selects of each attack; names: of the jobs in the address of the page.
export function startPage(suffixes, names) {
  const choices = suffixes.map((suffix) => new AttackChoice(suffix));
  const views = names.map(() => new JobView(document.getElementById("jobs")));
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
      for (const [index, view] of views.entries()) {
        const fields = { picture: drop.id, model: model.value, ...choices[index].fields, ...limits(), mask: brush.text() };
        const job = await post("/jobs", fields);
        address.set(names[index], job.id);
        view.clean = null;
        await view.open(job.id);
      }
      history.pushState(null, "", `?${address}`);
    } catch (error) {
      complain(error);
    }
    go.disabled = false;
  };

  // The jobs in the address, as the server knows them, and the form as it was.
  async function restore() {
    const address = new URLSearchParams(location.search);
    for (const [index, view] of views.entries()) {
      const id = address.get(names[index]);
      if (!id) continue;
      await view.open(id);
      choices[index].set(view.doc.request);
      if (index) continue;
      const { request, size } = view.doc;
      drop.id = request.picture;
      model.value = request.model;
      setLimits(request);
      await drop.look(true);
      if (size) brush.read(request.mask, size[1] * size[2]);
    }
  }

  addEventListener("popstate", () => restore().catch(complain));
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
