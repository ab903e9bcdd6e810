"""What ``pinprick web`` costs: weight and first byte of its page, live updates, price of watching.

    python benchmarks/web.py [--model pinprick:fashion_cnn] [--attack sigma_zero]
        [--effort published] [--repeats 3] [--out results/web]

Serves the page from this process, and opens it in Chromium in another one (needs playwright). The
price is CPU time beside the attack's own: in its thread, where candidates are copied and looked
through, and in the threads of the server. Both happen so many times per second, so that they are
also given in percent of the time that the run took: on a machine that does other work as well, a
run takes longer than its CPU time. A row for the page, then one per run, go to a file with
the name of the model. The first byte is measured on the first load after the start of the server,
and on several reloads, of which the median and the longest are given.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
import uvicorn
from write_rows import write_rows

from pinprick.data.select import load_subset
from pinprick.data.sets.photographs import read_photographs
from pinprick.report.png import save_png
from pinprick.web.app import make_app
from pinprick.web.attack_job import AttackJob
from pinprick.web.live_trace import LiveTrace
from pinprick.web.safety import Rules
from pinprick.web.serve import bind
from pinprick.web.workbench import Workbench

_RELOADS = 20  # of the page
_PAGES = ("document", "stylesheet", "script", "other")


def measure_threads() -> dict[str, float]:
    """CPU seconds of the last job: in all threads, in its own, and in watching it."""
    spent = {"watching": 0.0, "own": 0.0, "all": 0.0}
    see, work = LiveTrace.see, AttackJob.work

    def timed_see(trace: LiveTrace, *given: Any) -> None:
        start = time.thread_time()
        see(trace, *given)
        spent["watching"] += time.thread_time() - start

    def timed_work(job: AttackJob) -> None:
        spent["watching"] = 0.0
        own, every = time.thread_time(), time.process_time()
        work(job)
        spent["own"], spent["all"] = time.thread_time() - own, time.process_time() - every

    LiveTrace.see, AttackJob.work = timed_see, timed_work  # type: ignore[method-assign,assignment]
    return spent


def serve(given: argparse.Namespace) -> None:
    """Run attacks that a browser starts and watches; print what they cost."""
    torch.set_num_threads(1)
    workbench, bound = Workbench([given.model], "cpu"), bind("127.0.0.1", 0)
    with tempfile.TemporaryDirectory() as name:
        picture = Path(name) / "picture.png"
        if given.model.startswith("pinprick:fashion"):
            save_png(load_subset("fashion_sample")[0:1].images()[0], picture)
        else:
            read_photographs()[3].image.save(picture)
        app = make_app(workbench, Rules(host="127.0.0.1"), Path(name))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        threading.Thread(target=server.run, args=([bound],), daemon=True).start()
        spent = measure_threads()
        command = [sys.executable, __file__, "--watch", str(bound.getsockname()[1])]
        command += ["--picture", str(picture), "--attack", given.attack, "--effort", given.effort]
        command += ["--repeats", str(given.repeats)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as browser:
            assert browser.stdout is not None
            rows = [json.loads(browser.stdout.readline())]
            for line in browser.stdout:
                run = json.loads(line)
                attack = spent["own"] - spent["watching"]
                beside = spent["all"] - attack
                cost = {
                    "attack": given.attack,
                    "effort": given.effort,
                    "attack_cpu_s": round(attack, 2),
                    "watching_percent": round(100 * spent["watching"] / attack, 2),
                    "server_percent": round(100 * (spent["all"] - spent["own"]) / attack, 2),
                    "percent_of_time": round(100 * beside / run["seconds"], 2),
                }
                rows.append({**run, **cost})
                print(json.dumps(rows[-1]))
    workbench.queue.close()
    write_rows(given.out / f"{given.model.partition(':')[2] or given.model}.json", rows, "cpu")


def watch(given: argparse.Namespace) -> None:
    """Open the page, start attacks and count what changes on it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        program = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page, answers = browser.new_page(), []
        page.on("response", lambda answer: answers.append(answer))
        page.goto(f"http://127.0.0.1:{given.watch}/")
        page.wait_for_timeout(1000)
        weight = sum(len(one.body()) for one in answers if one.request.resource_type in _PAGES)
        timing = "(({requestStart, responseStart}) => responseStart - requestStart)"
        waited = f"{timing}(performance.getEntriesByType('navigation')[0])"
        first, waits = page.evaluate(waited), []
        for _ in range(_RELOADS):
            page.reload()
            waits.append(page.evaluate(waited))
        row = {
            "bytes": weight,
            "first_load_ms": round(first, 1),
            "reloads": _RELOADS,
            "reload_median_ms": round(median(waits), 1),
            "reload_longest_ms": round(max(waits), 1),
        }
        print(json.dumps(row), flush=True)
        page.set_input_files("#file", given.picture)
        page.wait_for_selector(".job.seen")
        page.select_option("#attack", given.attack)
        page.select_option("#effort", given.effort)
        for _ in range(given.repeats):
            page.click("#go")
            page.wait_for_selector(".job[data-state=running]")
            start, times = time.perf_counter(), [time.perf_counter()]
            shown = ""
            while page.get_attribute(".job", "data-state") == "running":
                text = page.inner_text(".headline .sub")
                if text != shown:
                    shown = text
                    times.append(time.perf_counter())
                page.wait_for_timeout(15)
            seconds = time.perf_counter() - start
            gaps = [after - before for before, after in pairwise(times)]
            line = {
                "seconds": round(seconds, 1),
                "updates": len(gaps),
                "longest_gap_s": round(max(gaps), 2),
            }
            print(json.dumps(line), flush=True)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="pinprick:fashion_cnn")
    parser.add_argument("--attack", default="sigma_zero")
    parser.add_argument("--effort", default="published")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/web"))
    parser.add_argument("--watch", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--picture", help=argparse.SUPPRESS)
    given = parser.parse_args()
    (serve if given.watch is None else watch)(given)


if __name__ == "__main__":
    main()
