// Requests to the server: JSON in and out, errors as one line, and the stream of events.

async function read(answer) {
  if (answer.ok) return answer.json();
  const body = await answer.text();
  let line = body;
  try {
    line = JSON.parse(body).error;
  } catch {
    // refusals before the application are plain text
  }
  throw new Error(line || `the server answered ${answer.status}`);
}

export async function get(path) {
  return read(await fetch(path));
}

export async function post(path, fields = {}) {
  const headers = { "content-type": "application/json" };
  return read(await fetch(path, { method: "POST", headers, body: JSON.stringify(fields) }));
}

export async function upload(file) {
  const name = encodeURIComponent(file.name || "picture");
  return read(await fetch(`/pictures?name=${name}`, { method: "POST", body: file }));
}

// Calls onJobs with the list of jobs when it changes, onProgress with new steps of attacks.
export function listen({ onJobs, onProgress }) {
  const events = new EventSource("/events");
  if (onJobs) events.addEventListener("jobs", (event) => onJobs(JSON.parse(event.data)));
  if (onProgress) events.addEventListener("progress", (event) => onProgress(JSON.parse(event.data)));
  addEventListener("pagehide", () => events.close());
}

let hiding = 0;

// Shows what went wrong, for a while.
export function complain(error) {
  const toast = document.getElementById("toast");
  toast.textContent = error.message;
  toast.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (toast.hidden = true), 8000);
}

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function plural(count, unit) {
  return `${count.toLocaleString("en")} ${count === 1 ? unit.replace(/s$/, "") : unit}`;
}
