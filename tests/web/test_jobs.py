"""Jobs: an attack from the picture to the download, the queue, stopping, switching pixels, why."""

import asyncio
import base64
import json
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from pinprick.web.attack_job import _MASK_CHARACTERS, AttackJob
from pinprick.web.job_queue import KEPT, WAITING, Job, JobQueue, JobStopped
from pinprick.web.live_events import STREAMS, EventStreams
from pinprick.web.uploads import text_field
from pinprick.web.why_job import WhyJob
from pinprick.web.workbench import PICTURES, Workbench, logits_of
from web.conftest import MODEL, Start, ended, picture_bytes, running

LONG = {"attack": "strattack", "effort": "published"}  # minutes, if nobody stops it


def opened(client: TestClient, path: str) -> "np.ndarray[Any, Any]":
    answer = client.get(path)
    assert answer.headers["content-type"] == "image/png"
    return np.asarray(Image.open(BytesIO(answer.content)))


def run_alone(work: Coroutine[Any, Any, Any]) -> Any:
    """What it returns; in a thread, since a browser leaves a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def test_a_model_says_what_it_sees(client: TestClient, picture: str) -> None:
    seen = client.post("/look", json={"picture": picture, "model": MODEL}).json()
    assert seen["size"] == [1, 28, 28]
    assert len(seen["classes"]) == 5
    assert seen["prediction"]["name"] in client.get(f"/classes?model={MODEL}").json()
    assert opened(client, f"/prepared.png?picture={picture}&model={MODEL}").shape == (28, 28)


def test_an_attack_ends_with_an_image_that_fools(client: TestClient, start: Start) -> None:
    job = start(unit="pixels")
    done = ended(client, job)
    assert done["state"] == "done", done["error"]
    assert done["outcome"]["success"]
    last = done["steps"][-1]
    assert last[4] == done["outcome"]["l0_pixels"] == len(done["changed"])
    clean, adversarial = (
        opened(client, f"/jobs/{job}/{name}.png") for name in ("clean", "adversarial")
    )
    assert (clean != adversarial).sum() == last[4]
    assert (opened(client, f"/jobs/{job}/steps/{last[0]}.png") == adversarial).all()
    document = json.loads(client.get(f"/jobs/{job}/result.json").content)
    assert document["images"][0]["l0_pixels"] == last[4]
    assert document["complete"]
    report = client.get(f"/jobs/{job}/report.html")
    assert report.headers["content-disposition"] == 'attachment; filename="coat-report.html"'
    assert "Pinprick" in report.text


def test_every_step_has_the_scores_of_its_image(client: TestClient, start: Start) -> None:
    job = start(unit="elements")
    done = ended(client, job)
    said = [client.get(f"/jobs/{job}/steps/{step[0]}.json").json() for step in done["steps"]]
    assert said[-1] == done["outcome"]["after"]
    label = done["outcome"]["label"]
    for step, scores in zip(done["steps"], said, strict=True):
        assert (scores["prediction"]["index"] != label) == step[6]
    assert client.get(f"/jobs/{job}/steps/99999.json").json()["error"] == "there is no such step"


def test_steps_fall(client: TestClient, start: Start) -> None:
    steps = ended(client, start(unit="elements"))["steps"]
    fooling = [step for step in steps if step[6]]
    counts, passes = [step[5] for step in fooling], [step[1] for step in steps]
    assert counts == sorted(counts, reverse=True)
    assert passes == sorted(passes)
    assert len(fooling) > 1


def test_a_target_is_found_by_name_and_a_wrong_one_fails_in_one_line(
    client: TestClient, start: Start
) -> None:
    done = ended(client, start(target="sandal"))
    assert done["outcome"]["adversarial"]["name"].lower() == "sandal"
    failed = ended(client, start(target="sandel"))
    assert failed["state"] == "failed"
    assert "did you mean" in failed["error"]
    assert "\n" not in failed["error"]


def mask_text(mask: "np.ndarray[Any, Any]") -> str:
    return base64.b64encode(np.packbits(mask).tobytes()).decode()


def test_a_painted_mask_is_kept(client: TestClient, start: Start) -> None:
    mask = np.zeros((28, 28), dtype=bool)
    mask[:, 14:] = True
    done = ended(client, start(unit="pixels", mask=mask_text(mask)))
    assert done["changed"]
    assert all(pixel["column"] >= 14 for pixel in done["changed"])


def test_a_mask_of_the_largest_picture_is_taken() -> None:
    largest = mask_text(np.ones((2048, 2048), dtype=bool))
    assert text_field({"mask": largest}, "mask", most=_MASK_CHARACTERS) == largest


def test_a_job_that_waits_keeps_its_picture(
    client: TestClient, workbench: Workbench, start: Start
) -> None:
    first, second = start(**LONG), start(model="pinprick:mnist_cnn")
    running(client, first)
    workbench._pictures.clear()  # as after twelve other pictures
    client.post(f"/jobs/{first}/stop")
    assert ended(client, second)["state"] == "done"


@pytest.mark.parametrize(
    ("mask", "line"),
    [
        ("!!", "not base64"),
        ("AAAA", "one bit for each"),
        (mask_text(np.zeros((28, 28), dtype=bool)), "nothing may change"),
    ],
)
def test_a_bad_mask_is_refused(client: TestClient, start: Start, mask: str, line: str) -> None:
    assert line in ended(client, start(mask=mask))["error"]


def test_a_running_attack_is_stopped_and_keeps_its_best(client: TestClient, start: Start) -> None:
    job = start(**LONG)
    running(client, job)
    asked = time.monotonic()
    assert client.post(f"/jobs/{job}/stop").status_code == 200
    done = ended(client, job, seconds=5)
    assert time.monotonic() - asked < 2
    assert done["state"] == "stopped"
    assert done["outcome"]["out_of_time"]
    assert opened(client, f"/jobs/{job}/adversarial.png").shape == (28, 28)


def test_jobs_run_one_at_a_time_and_a_waiting_one_can_be_stopped(
    client: TestClient, start: Start, workbench: Workbench
) -> None:
    first, second, third = start(**LONG), start(), start()
    running(client, first)
    states = [client.get(f"/jobs/{job}").json()["state"] for job in (first, second, third)]
    assert states == ["running", "waiting", "waiting"]
    assert [job["waits"] for job in workbench.queue.list()] == [2, 1, 0]
    client.post(f"/jobs/{second}/stop")
    client.post(f"/jobs/{first}/stop")
    assert ended(client, third)["state"] == "done"
    assert client.get(f"/jobs/{second}").json()["state"] == "stopped"


def test_the_queue_is_bounded(client: TestClient, start: Start, picture: str) -> None:
    running(client, start(**LONG))
    for _ in range(WAITING):
        start()
    answer = client.post("/jobs", json={"picture": picture, "model": MODEL, "attack": "greedy"})
    assert answer.status_code == 429
    assert "wait" in answer.json()["error"]


def test_pixels_are_switched_off_and_on_also_while_another_attack_runs(
    client: TestClient, start: Start
) -> None:
    job = start(unit="pixels")
    done = ended(client, job)
    running(client, start(**LONG))
    count = len(done["changed"])
    all_on = client.post(f"/jobs/{job}/pixels", json={"off": []}).json()
    assert all_on["fools"]
    assert all_on["margin"] == pytest.approx(done["outcome"]["margin"], abs=1e-4)
    all_off = client.post(f"/jobs/{job}/pixels", json={"off": list(range(count))}).json()
    assert not all_off["fools"]
    assert all_off["prediction"] == done["outcome"]["before"]["prediction"]
    for off in ([count], [-1], [0.5], "x", None):
        assert client.post(f"/jobs/{job}/pixels", json={"off": off}).status_code == 400


def test_why_groups_every_changed_pixel_on_two_maps(client: TestClient, start: Start) -> None:
    job = start(unit="pixels")
    done = ended(client, job)
    asked = client.post(f"/jobs/{job}/why")
    assert asked.status_code == 202
    why = ended(client, asked.json()["id"])
    assert why["state"] == "done", why["error"]
    assert why["of"] == job
    pixels = {tuple(pixel) for group in why["groups"] for pixel in group["pixels"]}
    assert pixels == {(pixel["row"], pixel["column"]) for pixel in done["changed"]}
    for name in ("label", "rival"):
        assert opened(client, f"/jobs/{why['id']}/maps/{name}.png").shape == (28, 28)


def test_a_why_that_is_stopped_answers_the_question_that_it_is_at(
    client: TestClient, start: Start, workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = workbench.queue.find(start())
    ended(client, attack.id)
    assert isinstance(attack, AttackJob)
    why, model, answers = WhyJob(attack, workbench), workbench.load(MODEL), []

    def question() -> None:
        why.stop()
        answers.append(logits_of(model, attack.finished().images))

    monkeypatch.setattr(workbench.queue, "answer_questions", question)
    with why._between_passes(model), pytest.raises(JobStopped):
        logits_of(model, attack.finished().images)
    assert len(answers) == 1


def test_the_downloaded_result_says_what_was_asked(client: TestClient, start: Start) -> None:
    mask = mask_text(np.ones((28, 28), dtype=bool))
    limited, free = start(mask=mask, max_passes=77), start()
    for job in (limited, free):
        ended(client, job)
    first, second = (client.get(f"/jobs/{job}/result.json").json() for job in (limited, free))
    assert (first["request"]["max_passes"], first["mask"]) == (77, "painted on the page")
    assert (second["request"]["max_passes"], second["mask"]) == (None, None)


def test_there_is_no_why_before_there_is_a_result(client: TestClient, start: Start) -> None:
    answer = client.post(f"/jobs/{start(**LONG)}/why")
    assert answer.status_code == 400
    assert "no result yet" in answer.json()["error"]


def test_a_lost_job_or_picture_says_what_to_do(client: TestClient) -> None:
    assert "start it again" in client.get("/jobs/none").json()["error"]
    answer = client.post("/look", json={"picture": "none", "model": MODEL})
    assert "drop it again" in answer.json()["error"]


def test_pictures_are_forgotten_when_there_are_many(workbench: Workbench) -> None:
    data = picture_bytes()
    numbers = [workbench.add_picture(data, "a") for _ in range(PICTURES + 1)]
    assert workbench.picture(numbers[-1]).data == data
    with pytest.raises(Exception, match="no such picture"):
        workbench.picture(numbers[0])


class Broken(Job):
    """A job with a bug."""

    kind = "broken"

    def work(self) -> None:
        raise ValueError("first line\nsecond line")

    def document(self) -> dict[str, Any]:
        return self.summary()


def test_a_bug_in_a_job_becomes_one_line_and_the_queue_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue = JobQueue()
    jobs = [Broken(str(number)) for number in range(KEPT + 3)]
    for job in jobs:
        queue.submit(job)
        while not job.is_over:
            time.sleep(0.001)
    queue.close()
    assert jobs[-1].error == "a bug: ValueError: first line second line"
    assert "Traceback" in capsys.readouterr().err
    assert len(queue.jobs) == KEPT
    assert jobs[0].id not in queue.jobs


class Listener:
    """A request of a browser that stays."""

    async def is_disconnected(self) -> bool:
        return False


def test_a_page_that_comes_later_hears_all_steps_and_all_jobs(
    client: TestClient, start: Start, workbench: Workbench
) -> None:
    job = start(unit="pixels")
    done = ended(client, job)

    async def listen() -> list[tuple[str, Any]]:
        stream = EventStreams(workbench.queue)._events(Listener())
        heard = [await anext(stream) for _ in range(2)]
        await stream.aclose()
        lines = [event.strip().split("\n") for event in heard]
        return [(name.removeprefix("event: "), json.loads(data[6:])) for name, data in lines]

    (first, progress), (second, jobs) = run_alone(listen())
    assert (first, second) == ("progress", "jobs")
    assert progress["id"] == job
    assert progress["steps"] == done["steps"]
    assert [one["state"] for one in jobs] == ["done"]


def test_the_number_of_streams_is_bounded(workbench: Workbench) -> None:
    streams = EventStreams(workbench.queue)
    streams._open = STREAMS
    assert run_alone(streams.answer(Listener())).status_code == 429
