"""The report in a real browser, from ``file://``."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import OpenPage
from cli.conftest import MODELS
from PIL import Image

from pages.results import sample, write_folder, write_store
from pages.test_report_page import HOSTILE
from pinprick.attacks import Greedy
from pinprick.jobs.explain import explain_pictures
from pinprick.jobs.pictures import PictureSource
from pinprick.pages.report_page import make_report
from pinprick.trace import Trace

pytestmark = pytest.mark.browser
Open = Callable[..., Any]

SAME_PIXELS = """card => {
  const read = (name) => {
    const canvas = card.querySelector(name);
    const { width, height } = canvas;
    return canvas.getContext("2d").getImageData(0, 0, width, height).data.join();
  };
  return read(".clean") === read(".adversarial");
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def store_page(folder: Path) -> Path:
    """A report of a store: two attacks, one that failed on an image, and one of errors."""
    results = [sample([3, 0, 1, 2], trace=one_step(3, 4)), sample([5, 4, 4, 5], "wide")]
    store = write_store(folder / "store", results, error="out of memory")
    make_report([store]).write(folder / "store.html")
    return folder / "store.html"


@pytest.fixture
def opened(open_page: OpenPage, store_page: Path) -> Open:
    return partial(open_file, open_page, store_page)


def open_file(open_page: OpenPage, path: Path, *, width: int = 1280, scheme: str = "light") -> Any:
    """The page of a file once its script has run; it asks for no other file."""
    page = open_page(
        width,
        color_scheme=scheme,
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(f"dialog {dialog.message}"))
    page.goto(path.as_uri())
    wait_until(page, "document.documentElement.dataset.ready === 'yes'")
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
    return page


def wait_until(page: Any, condition: str) -> None:
    """Wait for a condition; ``wait_for_function`` needs eval, which the page forbids."""
    for _ in range(500):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never came true: {condition}")


def one_step(forwards: int, images: int) -> Trace:
    """A trace in which every image is fooled by one pixel after so many forward passes."""
    passes, ones = torch.full((images,), forwards), torch.ones(images)
    return Trace(passes // forwards, passes, passes, -ones, ones, ones)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_the_page_opens_and_fits(opened: Open, width: int, scheme: str) -> None:
    page = opened(width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg.plot").count() == 4
    dark = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (dark == "rgb(21, 21, 24)") == (scheme == "dark")
    page.locator(".card").first.click()
    assert_stage_fits(page)


def assert_stage_fits(page: Any) -> None:
    """The image of the dialog is as far from its edges as the heading is."""
    box = page.locator("dialog .stage").bounding_box()
    around = page.locator("dialog header").bounding_box()
    assert box["x"] >= around["x"]
    assert box["x"] + box["width"] <= around["x"] + around["width"]


def test_everything_has_a_name_for_screen_readers(opened: Open) -> None:
    page = opened()
    page.locator(".card").first.click()
    nameless = page.evaluate("""() => [...document.querySelectorAll(
        "button, select, canvas, svg[role], [tabindex]")].filter((one) =>
        !(one.textContent.trim() || one.getAttribute("aria-label") || one.closest("label")))
        .map((one) => one.outerHTML.slice(0, 80))""")
    assert nameless == []


def test_cards_are_filtered(opened: Open) -> None:
    page = opened()
    names = page.locator(".card .name")
    assert names.count() == 4
    for choice, count in (("fooled", 3), ("not-fooled", 1), ("disagree", 1), ("all", 4)):
        page.locator(f"[data-filter={choice}]").click()
        assert names.count() == count, choice
    page.locator("[data-filter=disagree]").click()
    assert names.all_inner_texts() == ["fashion_sample/test[1]"]
    page.get_by_label("Attack").select_option("broken")
    page.locator("[data-filter=error]").click()
    assert page.locator(".card .cost").all_inner_texts() == ["out of memory"] * 4


def test_cards_are_sorted_and_failures_come_last(opened: Open) -> None:
    page = opened()
    order = page.get_by_label("Sort by")
    costs = page.locator(".card .cost")
    order.select_option("pixels")
    assert [text.split()[0] for text in costs.all_inner_texts()[:3]] == ["1", "2", "3"]
    page.get_by_label("Turn the order round").click()
    assert [text.split()[0] for text in costs.all_inner_texts()[:3]] == ["3", "2", "1"]
    assert page.locator(".card .outcome").last.inner_text().endswith("not fooled")


def test_holding_a_key_flips_all_cards(opened: Open) -> None:
    page = opened()
    card = page.locator(".card").first
    card.scroll_into_view_if_needed()
    wait_until(page, "document.querySelector('.card .adversarial').width === 28")
    assert not card.evaluate(SAME_PIXELS)
    page.keyboard.down("f")
    assert card.evaluate(SAME_PIXELS)
    page.keyboard.up("f")
    assert not card.evaluate(SAME_PIXELS)


def test_pictures_are_those_that_were_attacked(opened: Open) -> None:
    expected = sample([3])
    page = opened()
    page.locator(".card").first.scroll_into_view_if_needed()
    wait_until(page, "document.querySelector('.card .adversarial').width === 28")
    for name, image in (("clean", expected.images), ("adversarial", expected.adversarial)):
        shown = page.evaluate(f"""() => {{ const c = document.querySelector(".card .{name}");
            return [...c.getContext("2d").getImageData(0, 0, 28, 28).data]; }}""")
        wanted = (image[0, 0] * 255).round().flatten().int().tolist()
        assert shown[::4] == wanted, name


def test_an_image_is_zoomed_to_pixels_with_values(opened: Open) -> None:
    page = opened()
    page.locator(".card").first.click()
    stage, readout = page.locator("dialog .stage"), page.locator("dialog .readout")
    assert page.locator("dialog .pixels tbody tr").count() == 3
    page.locator("dialog .pixels .link").nth(1).click()
    assert readout.inner_text() == "Row 0, column 1: before 0, after 255"
    stage.focus()
    page.keyboard.press("ArrowDown")
    assert readout.inner_text() == "Row 1, column 1: unchanged, 0"
    assert stage.get_attribute("data-shown") == "adversarial"
    page.keyboard.down("f")
    assert stage.get_attribute("data-shown") == "clean"
    page.keyboard.up("f")
    assert stage.get_attribute("data-shown") == "adversarial"
    page.locator("[data-view=changes]").click()
    assert stage.get_attribute("data-shown") == "changes"
    page.keyboard.press("j")
    wait_until(page, "document.querySelector('dialog h2').textContent.endsWith('[1]')")
    page.locator("dialog .others button", has_text="wide").click()
    wait_until(page, "document.querySelectorAll('dialog .pixels tbody tr').length === 4")
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()


def test_a_card_opens_with_the_keyboard(opened: Open) -> None:
    page = opened()
    page.locator(".card").nth(2).focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog h2").inner_text() == "fashion_sample/test[2]"


def test_a_curve_is_read_by_pointer_and_by_keyboard(opened: Open) -> None:
    page = opened()
    plot, hover = (
        page.locator("[data-part=accuracy]"),
        page.locator("[data-part=accuracy] .hover"),
    )
    plot.locator("svg.plot").hover(position={"x": 60, "y": 100})
    assert hover.locator("strong").inner_text() == "0 pixels that may change"
    assert "100 %" in hover.locator("tr", has_text="pin").inner_text()
    plot.locator("svg.plot").focus()
    page.keyboard.press("ArrowRight")
    assert hover.locator("strong").inner_text() == "1 pixels that may change"
    assert "75.0 %" in hover.locator("tr", has_text="pin").inner_text()
    plot.get_by_role("button", name="elements").click()
    assert "elements" in plot.locator(".axes .name").first.text_content()
    plot.locator(".legend button").first.click()
    assert plot.locator("g[data-series=pin]").count() == 0


def test_a_table_is_copied_in_three_formats(opened: Open) -> None:
    page = opened()
    plot = page.locator("[data-part=accuracy]")
    plot.locator("summary").click()
    plot.locator("tbody tr").first.wait_for()
    assert plot.locator("tbody tr").count() == 7
    for name, first in (
        ("CSV", "attack,pixels,robust accuracy,95 % low,95 % high\npin,0,1,"),
        ("Markdown", "| attack | pixels | robust accuracy |"),
        ("LaTeX", "% Robust accuracy at a number of pixels"),
    ):
        plot.get_by_role("button", name=f"Copy {name}").click()
        plot.get_by_text(f"Copied as {name}.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()").startswith(first)


def test_success_against_queries_has_the_attacks_with_a_trace(opened: Open) -> None:
    page = opened()
    plot = page.locator("[data-part=queries]")
    assert plot.locator(".legend button").all_inner_texts() == ["pin"]
    plot.locator("summary").click()
    assert plot.locator("tbody tr").last.inner_text().split("\t")[:3] == ["pin", "3", "0.75"]
    assert not page.locator("[data-part=no-queries]").is_visible()


def test_an_attack_looks_the_same_in_all_plots(open_page: OpenPage, folder: Path) -> None:
    results = [
        sample([1, 1]),
        sample([5, 4], "wide", trace=one_step(3, 2)),
    ]  # the best has no trace
    store = write_store(folder / "one trace", results)
    make_report([store]).write(folder / "one trace.html")
    page = open_file(open_page, folder / "one trace.html")
    marks = [
        page.locator(f"[data-part={plot}] .legend button", has_text="wide")
        .locator("svg")
        .inner_html()
        for plot in ("accuracy", "cost", "queries")
    ]
    assert marks[0] == marks[1] == marks[2]


def test_the_transfer_matrix_is_hovered(opened: Open) -> None:
    page = opened()
    plot = page.locator("[data-part=transfer]")
    plot.locator("svg .cell").first.hover()
    assert "0 % of 4 images" in plot.locator(".hover").inner_text()
    plot.locator("summary").click()
    assert "other net" in plot.locator("tbody").inner_text()


def test_controls_are_not_printed(opened: Open) -> None:
    page = opened()
    page.emulate_media(media="print")
    assert not page.locator(".controls").is_visible()
    assert page.locator(".card").first.is_visible()
    assert page.locator("[data-part=accuracy] svg.plot").is_visible()


def test_pictures_are_printed_that_were_never_in_view(opened: Open) -> None:
    page = opened()
    page.wait_for_timeout(300)  # pictures are decoded when the browser is idle
    assert page.evaluate("document.querySelector('.card .adversarial').width") == 1
    printed = page.pdf(format="A4")
    assert printed.count(b"/Subtype /Image") >= 4 + 3  # clean ones, and those that were changed


def test_plots_are_printed_whole_and_in_colours_for_paper(opened: Open) -> None:
    page = opened(scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    widths = page.evaluate("""() => {
      document.querySelector("main").style.width = "600px"; // of paper; drawn for a screen
      return [...document.querySelectorAll("svg.plot")].map((plot) => {
        const { width, height } = plot.getBoundingClientRect();
        return [width, width / height - plot.viewBox.baseVal.width / plot.viewBox.baseVal.height];
      });
    }""")
    assert len(widths) == 4
    assert page.evaluate("document.querySelector('.attacks').offsetWidth") <= 600
    assert all(width <= 600 and abs(stretched) < 0.01 for width, stretched in widths)
    ink = "getComputedStyle(document.documentElement).getPropertyValue('--series-1')"
    assert page.evaluate(ink) == "#2d5f8b"


def test_dots_of_few_images_are_strong(opened: Open) -> None:
    page = opened()
    widths = (
        "[...document.querySelectorAll('.dots')].map((one) => getComputedStyle(one).strokeWidth)"
    )
    assert page.evaluate(widths) == ["5px"] * 3


def test_few_cards_are_below_their_heading_on_a_wide_screen(opened: Open) -> None:
    page = opened(width=2560)
    heading, card = page.locator("#images h2"), page.locator(".card").first
    assert card.bounding_box()["x"] == heading.bounding_box()["x"]


def test_cards_are_added_as_they_come_into_view(open_page: OpenPage, folder: Path) -> None:
    result = sample([1, 2])
    made = write_folder(folder / "many", result)
    document = json.loads((made / "result.json").read_text())
    document["images"] = [
        {**document["images"][0], "path": f"no file {number}", "name": str(number)}
        for number in range(300)
    ]
    (made / "result.json").write_text(json.dumps(document))
    make_report([made]).write(folder / "many.html")
    page = open_file(open_page, folder / "many.html")
    assert page.locator(".card").count() == 48
    page.locator(".card").last.scroll_into_view_if_needed()
    wait_until(page, "document.querySelectorAll('.card').length > 48")


def test_hostile_names_do_nothing(open_page: OpenPage, folder: Path) -> None:
    made = write_folder(folder / "hostile", sample([1, 0], HOSTILE), model=HOSTILE)
    make_report([made], title=HOSTILE).write(folder / "hostile.html")
    page = open_file(open_page, folder / "hostile.html")
    assert page.locator("h1").inner_text() == HOSTILE
    page.locator(".card").first.click()
    assert page.locator("dialog header p").inner_text() == HOSTILE
    assert page.locator("img").count() == 0


def test_bars_and_pixels_of_an_explanation_point_at_each_other(
    open_page: OpenPage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "browser_test_models.py").write_text(MODELS)
    Image.new("RGB", (8, 8), (150, 100, 50)).save(folder / "brick.png")
    monkeypatch.syspath_prepend(folder)
    explain_pictures(
        Greedy(),
        "browser_test_models:colours",
        PictureSource(paths=[folder / "brick.png"]),
        folder / "explained",
        grouping="pixels",
        layer="none",
        figures=0,
    )
    file = folder / "explained" / "explanation.json"
    document = json.loads(file.read_text())
    document["images"][0]["explanation"]["groups"][0]["shapley"]["obscuring"] = -9.0
    file.write_text(json.dumps(document))
    make_report([folder / "explained"]).write(folder / "explained.html")
    page = open_file(open_page, folder / "explained.html")
    page.locator("[data-filter=explained]").click()
    page.locator(".card").first.click()
    bars = page.locator("dialog .effects .group")
    assert bars.count() == page.locator("dialog .pixels tbody tr").count() == 11
    starts = page.evaluate(
        "[...document.querySelectorAll('dialog .group g rect')].map((one) => one.x.baseVal.value)"
    )
    assert min(starts) >= 84  # a bar to the left does not cover the names of groups
    page.locator("dialog .pixels .link").first.click()
    assert page.locator("dialog .effects .group.on").count() == 1
    page.get_by_role("button", name="Fit").click()
    before = page.evaluate("document.querySelector('dialog .stage').toDataURL()")
    bars.nth(10).hover()  # below the edge of the dialog: the image stays in view
    stage = page.locator("dialog .stage").bounding_box()
    assert 0 <= stage["y"] <= stage["y"] + stage["height"] <= 900
    assert page.evaluate("document.querySelector('dialog .stage').toDataURL()") != before
    narrow = open_file(open_page, folder / "explained.html", width=360)
    narrow.locator(".card").first.click()
    wide = "document.querySelector('dialog .pixels td:last-child').textContent = '255 '.repeat(12)"
    narrow.evaluate(wide)  # as of an image of many channels
    assert_stage_fits(narrow)
