// The list of jobs in the corner: what runs, what waits, links to all of them.

import { complain, element, post } from "./api.js";

const WORDS = { waiting: "waits", running: "runs", done: "done", stopped: "stopped", failed: "failed" };

export function showQueue(jobs) {
  const open = jobs.filter((job) => job.state === "running" || job.state === "waiting").length;
  const count = document.getElementById("queue-count");
  count.textContent = open ? `${open} running or waiting` : jobs.length ? "Recent jobs" : "No jobs";
  count.className = open ? "busy" : "";
  document.getElementById("queue-list").replaceChildren(...jobs.map(line));
}

function line(job) {
  const item = element("li", { className: job.state });
  const title = job.title.replace(/^why: /, "Why? ");
  item.append(
    job.kind === "attack" ? element("a", { href: `/?job=${job.id}`, textContent: title }) : element("span", { textContent: title }),
    element("span", { className: "state", textContent: job.error || WORDS[job.state] }),
  );
  if (job.state === "waiting" || job.state === "running") {
    const stop = element("button", { type: "button", textContent: "Stop" });
    stop.onclick = () => post(`/jobs/${job.id}/stop`).catch(complain);
    item.append(stop);
  }
  return item;
}
