"""The pages in a real browser: drop, run, switch, paint, compare, stop, reload, two tabs."""

import base64
import io
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from browser import OpenPage, Page
from PIL import Image

from pinprick.data.select import load_subset
from pinprick.data.subset import parse
from pinprick.web.app import make_app
from pinprick.web.png_bytes import png_bytes, to_bytes
from pinprick.web.safety import Rules
from pinprick.web.serve import bind
from pinprick.web.workbench import Workbench
from web.conftest import copy_store

pytestmark = pytest.mark.browser

LONG = ("strattack", "published")  # minutes, if nobody stops it


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a thread, with one small model and one store."""
    folder = tmp_path_factory.mktemp("work")
    copy_store(folder / "store", cells=3)
    workbench = Workbench(["pinprick:fashion_cnn"], "cpu")
    app = make_app(workbench, Rules(host="127.0.0.1"), folder)
    bound = bind("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
    server.should_exit = True
    thread.join(timeout=10)
    workbench.queue.close()
    bound.close()


@pytest.fixture(scope="module")
def shoe() -> bytes:
    """An image of Fashion-MNIST as PNG."""
    return png_bytes(to_bytes(load_subset(parse("fashion_sample"))[0:1].images()[0]))


def drop(page: Page, data: bytes, name: str = "shoe.png", kind: str = "image/png") -> None:
    """Drop a file on the page, as from a folder."""
    page.evaluate(
        """([text, name, type]) => {
          const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([bytes], name, { type }));
          const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
          document.getElementById("drop").dispatchEvent(event);
        }""",
        [base64.b64encode(data).decode(), name, kind],
    )


def seen(page: Page) -> None:
    page.wait_for_selector("#go:not([disabled])")
    page.wait_for_selector(".job.seen")


def state(page: Page, *states: str, number: int = 0) -> None:
    selectors = ", ".join(f"#jobs .job:nth-child({number + 1})[data-state={one}]" for one in states)
    page.wait_for_selector(selectors)


def attack(page: Page, address: str, shoe: bytes, **choices: str) -> None:
    """Open the page, drop the picture and start an attack."""
    page.goto(address)
    drop(page, shoe)
    seen(page)
    for name, value in choices.items():
        page.select_option(f"#{name}", value)
    page.click("#go")


def shown(page: Page) -> bytes:
    """The pixels of the first stage, as a PNG."""
    text = page.evaluate("document.querySelector('.frame .base').toDataURL()")
    return base64.b64decode(text.partition(",")[2])


def wait_until(page: Page, condition: Callable[[], bool]) -> None:
    for _ in range(400):
        if condition():
            return
        page.wait_for_timeout(25)
    raise AssertionError("never came true")


def final_image(page: Page) -> bytes:
    """The values of the adversarial image, once the stage shows it."""
    link = page.locator("[data-file='adversarial.png']").first.get_attribute("href")
    answer = page.request.get(f"{page.url.partition('/?')[0]}{link}")
    wanted = Image.open(io.BytesIO(answer.body())).convert("RGB").tobytes()
    wait_until(page, lambda: values(page) == wanted)
    return wanted


def values(page: Page) -> bytes:
    return Image.open(io.BytesIO(shown(page))).convert("RGB").tobytes()


def test_a_dropped_picture_is_attacked_and_its_pixels_are_switched(
    address: str, shoe: bytes, open_page: OpenPage
) -> None:
    page = open_page()
    attack(page, address, shoe, unit="pixels")
    state(page, "done")
    fooled = page.inner_text(".job h2")
    count = page.locator(".pixels li").count()
    assert fooled.startswith(f"{count} pixel")
    assert "→" in fooled
    adversarial = final_image(page)
    assert Image.open(io.BytesIO(shown(page))).size == (28, 28)
    page.locator(".pixels li input").first.uncheck()
    page.locator(".headline .sub", has_text=f"with {count - 1} pixel").wait_for()
    page.click(".all-on")
    page.locator(".job h2", has_text=fooled).wait_for()
    wait_until(page, lambda: values(page) == adversarial)
    page.click("text=Clean")
    wait_until(page, lambda: values(page) != adversarial)
    with page.expect_download() as download:
        page.click("[data-file='adversarial.png']")
    assert download.value.suggested_filename == "shoe-adversarial.png"
    page.click(".why")
    page.wait_for_selector(".reasons .groups li")
    assert page.locator(".reasons .frame").count() == 2
    assert "LayerCAM at layer " in page.inner_text(".reasons .sub")
    page.click("#go")
    page.wait_for_selector(".reasons", state="hidden")
    page.wait_for_selector(".why:not([disabled])")  # the next attack can be asked about as well


def test_a_reloaded_page_finds_its_job_and_its_choices(
    address: str, shoe: bytes, open_page: OpenPage
) -> None:
    page = open_page()
    page.goto(address)
    drop(page, shoe)
    seen(page)
    page.select_option("#attack", "greedy")
    page.fill("#target", "Sandal")
    page.click("#go")
    state(page, "done", "failed")
    before = page.inner_text(".job h2")
    page.reload()
    state(page, "done")
    assert page.inner_text(".job h2") == before
    assert page.input_value("#attack") == "greedy"
    assert page.input_value("#target") == "Sandal"
    page.wait_for_selector("#thumb:not([hidden])")


def test_the_slider_goes_back_over_the_trace(
    address: str, shoe: bytes, open_page: OpenPage
) -> None:
    page = open_page()
    attack(page, address, shoe, unit="elements")
    state(page, "done")
    last, said = final_image(page), page.inner_text(".scores")
    slider = page.locator(".effort input")
    end = slider.get_attribute("max")
    assert int(end) > 0
    slider.fill("0")
    wait_until(page, lambda: values(page) != last)
    wait_until(page, lambda: page.inner_text(".scores") != said)  # of the image that is shown
    slider.fill(end)
    wait_until(page, lambda: page.inner_text(".scores") == said)
    assert page.locator(".plot .fall").count() == 1


def test_pixels_change_only_where_the_mask_is_painted(
    address: str, shoe: bytes, open_page: OpenPage
) -> None:
    page = open_page()
    page.goto(address)
    drop(page, shoe)
    seen(page)
    page.wait_for_timeout(200)
    page.click("#paint")
    page.fill("#brush", "40")
    box = page.locator(".frame .over").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7
    page.mouse.move(x - 150, y)
    page.mouse.down()
    page.mouse.move(x + 150, y, steps=8)
    page.mouse.up()
    page.click("#go")
    state(page, "done")
    lines = page.locator(".pixels li").all_inner_texts()
    assert lines
    rows = [int(line.split("row ")[1].split(",")[0]) for line in lines]
    assert min(rows) > 28 * 0.5
    assert max(rows) < 28 * 0.9


def test_numbers_of_the_plot_and_states_of_jobs_can_be_read(
    address: str, shoe: bytes, open_page: OpenPage
) -> None:
    page = open_page(2560, 1300)
    attack(page, address, shoe)
    state(page, "done")
    page.click(".why")
    page.wait_for_selector(".reasons .groups li")
    page.locator("#queue-list .state", has_text="done").nth(1).wait_for(state="attached")
    # what comes first is given the room, and breaks anywhere
    assert page.locator("#queue-list li > .state:first-child").count() == 0
    page.route(
        "**/jobs/*", lambda route: route.fulfill(json=with_count(route.fetch().json(), 150_528))
    )
    page.reload()
    page.locator(".plot text", has_text="150,528").wait_for()
    outside = page.evaluate("""() => {
      const left = (element) => element.getBoundingClientRect().left;
      const edge = left(document.querySelector(".plot"));
      const texts = [...document.querySelectorAll(".plot text")];
      return texts.filter((text) => left(text) < edge).map((text) => text.textContent);
    }""")
    assert outside == []


def with_count(job: dict[str, Any], count: int) -> dict[str, Any]:
    """A job whose first image that fools has so many changed pixels."""
    if "steps" in job:
        first = next(step for step in job["steps"] if step[6])
        first[4] = count
    return job


def test_two_attacks_are_compared_side_by_side(
    address: str, shoe: bytes, open_page: OpenPage
) -> None:
    page = open_page()
    page.goto(f"{address}compare")
    drop(page, shoe)
    seen(page)
    page.select_option("#attack-1", "greedy")
    page.click("#go")
    state(page, "done", number=0)
    state(page, "done", number=1)
    page.reload()
    state(page, "done", number=1)
    assert page.input_value("#attack-1") == "greedy"
    assert page.locator(".job h2", has_text="→").count() == 2
    captions = page.locator(".job .caption").all_inner_texts()
    assert [text.partition(" on ")[0] for text in captions] == ["Pinprick", "Greedy pixels"]


def test_a_running_attack_falls_live_in_two_tabs_and_is_stopped(
    address: str, shoe: bytes, open_page: OpenPage
) -> None:
    page = open_page()
    attack(page, address, shoe, attack=LONG[0], effort=LONG[1])
    state(page, "running")
    other = open_page()
    other.goto(page.url)
    state(other, "running")
    texts, until = set(), time.monotonic() + 2
    while time.monotonic() < until:
        texts.add(other.inner_text(".headline .sub"))
        other.wait_for_timeout(40)
    assert len(texts) >= 4  # at least twice per second
    assert other.locator(".scores .score").count() >= 5  # of the best image so far
    page.click(".stop")
    state(other, "stopped")
    state(page, "stopped")
    assert "best so far" in other.inner_text(".headline .sub")


def test_hostile_uploads_and_bad_input_become_one_line(
    address: str, shoe: bytes, open_page: OpenPage
) -> None:
    page = open_page()
    page.goto(address)
    page.evaluate("window.hurt = 0")
    drop(page, b"<svg xmlns='http://www.w3.org/2000/svg' onload='hurt=1'/>", "x.svg", "image/svg")
    page.wait_for_selector("#toast:not([hidden])")
    assert "not a picture" in page.inner_text("#toast")
    drop(page, shoe, "<img src=x onerror=hurt=1>.png")
    seen(page)
    page.fill("#target", "<b onclick=hurt=1>")
    page.click("#go")
    state(page, "failed")
    assert "no class" in page.inner_text(".headline .sub")
    page.click("#queue summary")
    assert page.evaluate("window.hurt") == 0


def test_a_store_is_browsed_from_its_board_to_its_images(address: str, open_page: OpenPage) -> None:
    page = open_page(360)
    page.goto(f"{address}stores?store=store&unit=elements")
    page.locator("#board th", has_text="median elements").first.wait_for()
    page.fill("#filter", "no such attack")
    assert page.locator("#cells tbody tr").count() == 0
    page.fill("#filter", "")
    page.locator("#cells td button").first.click()
    page.locator("#rows tbody tr").first.wait_for()
    with page.expect_popup() as report:
        page.click("#report")
    report.value.locator("h1").wait_for()
    assert report.value.evaluate("origin") == "null"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_pages_fit_every_width(
    address: str, shoe: bytes, open_page: OpenPage, width: int, request: Any
) -> None:
    page = open_page(width)
    for name in ("", "compare"):
        page.goto(address + name)
        drop(page, shoe)
        seen(page)
        page.click("#go")
        state(page, "done", number=1 if name else 0)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            if folder := request.config.getoption("basetemp"):  # to be looked at
                page.emulate_media(color_scheme=scheme)
                file = f"{folder}/{name or 'attack'}-{width}-{scheme}.png"
                page.screenshot(path=file, full_page=True)
