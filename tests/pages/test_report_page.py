"""The report as one file: what is in it, and what cannot get out of it."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pages.results import add_run_with_an_error, sample, write_folder, write_store
from pinprick import BadInput, Goal, save_result
from pinprick.pages.inline_assets import FOLDER, STYLES, modules, script
from pinprick.pages.report_page import as_script_data, make_report

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
_NONE = "\N{EN DASH}"  # of a number that is undefined


class Page(HTMLParser):
    """The elements of a page: tags with attributes, and the text of scripts by id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.words: list[str] = []
        self._script: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._script = str(dict(attrs).get("id", "main")) if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is None:
            self.words.append(data)
        else:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data

    @property
    def data(self) -> Any:
        return json.loads(self.scripts["report-data"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "store"
    results = [sample([3, 0, 1, 2]), sample([5, 4, 4, 5], "wide")]
    return write_store(folder, results, error="out of memory")


@pytest.fixture(scope="module")
def page(store: Path) -> Page:
    return Page(make_report([store]).html)


def test_the_summary_is_there_without_a_script(page: Page) -> None:
    text = " ".join(" ".join(page.words).split())
    assert "pin fooled 3 of 4 correctly classified images: 75.0 %" in text
    assert "The median image needed 2.5 changed pixels." in text
    assert "the next is wide with 4.5 pixels" in text
    assert "4 rows have an error." in text


def test_the_data_has_all_that_the_page_shows(page: Page) -> None:
    (task,) = page.data["tasks"]
    assert [line["attack"] for line in task["attacks"]] == ["pin", "wide", "broken"]
    assert task["gallery"]["attacks"]["pin"]["status"][:2] == ["fooled", "not fooled"]
    assert set(task["gallery"]["attacks"]["broken"]["status"]) == {"error"}
    changes = json.loads(page.scripts["changes-0-0"])
    assert [one and one["size"] for one in changes["pin"]] == [[28, 28]] * 4
    assert changes["broken"] == [None] * 4
    places = json.loads(page.scripts["places"])
    assert len(places) == 4  # each clean picture once, for all attacks
    assert "sheet-0" in page.scripts
    assert "sheet-1" not in page.scripts


def test_no_request_can_leave_the_page(store: Path) -> None:
    html = make_report([store]).html
    assert not re.search(r"https?:|//[a-z]+\.[a-z]", html)
    page = Page(html)
    for tag, attributes in page.tags:
        assert tag not in ("iframe", "object", "embed", "form", "base")
        for name in ("src", "href", "srcset", "action", "data"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), (tag, name)
        assert not any(name.startswith("on") for name in attributes)
    policies = [each["content"] for tag, each in page.tags if "http-equiv" in each]
    assert "default-src 'none'" in str(policies[0])


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    result = sample([1, 0])
    folder = write_folder(tmp_path / "made", result, model=HOSTILE)
    document = json.loads((folder / "result.json").read_text())
    document["attack"] = {"name": HOSTILE}
    for image in document["images"]:
        image["name"] = image["label_name"] = image["remark"] = HOSTILE
    (folder / "result.json").write_text(json.dumps(document))
    usual = Page(make_report([write_folder(tmp_path / "usual", result)]).html)
    page = Page(make_report([folder], title=HOSTILE).html)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in usual.tags]
    assert page.data["tasks"][0]["gallery"]["name"][0] == HOSTILE
    assert page.scripts["main"] == usual.scripts["main"]


def test_data_in_a_script_cannot_end_it() -> None:
    text = as_script_data({"a": "</script><!-- & \u2028"})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == {"a": "</script><!-- & \u2028"}


def test_several_sources_on_the_same_task_are_compared(tmp_path: Path) -> None:
    one = write_folder(tmp_path / "one", sample([3, 0]))
    other = write_folder(tmp_path / "other", sample([1, 1], "other"))
    again = write_folder(tmp_path / "again", sample([2, 2]))
    (task,) = Page(make_report([one, other, again]).html).data["tasks"]
    assert [line["attack"] for line in task["attacks"]] == ["other", "pin #2", "pin"]


def test_results_on_different_pictures_are_not_ranked_on_one_task(tmp_path: Path) -> None:
    both = sample([3, 1])
    folders = [
        write_folder(tmp_path / name, result, data=None)
        for name, result in (("first", both[:1]), ("second", both[1:]), ("other", both[1:]))
    ]
    tasks = Page(make_report(folders).html).data["tasks"]
    assert [task["data"] for task in tasks] == [
        "pictures: test[0]",
        "pictures: test[1]",
    ]
    found = [[line["attack"] for line in task["attacks"]] for task in tasks]
    assert found == [["pin"], ["pin", "pin #2"]]  # the same pictures are compared


def test_an_unfinished_attack_is_not_ranked_with_finished_ones(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [sample([3, 0, 1, 2]), sample([1, 1], "short")])
    tasks = Page(make_report([store]).html).data["tasks"]
    assert [(task["images"], task["data"]) for task in tasks] == [
        (4, "fashion_sample/test[0:4]: fashion_sample/test[0] and 3 more"),
        (2, "fashion_sample/test[0:4]: fashion_sample/test[0] and 1 more"),
    ]


def test_settings_tell_attacks_of_one_name_apart(tmp_path: Path) -> None:
    folders = [
        write_folder(tmp_path / str(k), sample([k, k], attack={"name": "pin", "k": k, "steps": 5}))
        for k in (1, 2)
    ]
    (task,) = Page(make_report(folders).html).data["tasks"]
    assert [line["attack"] for line in task["attacks"]] == ["pin k=1", "pin k=2"]


def test_saved_results_on_the_same_images_are_compared(tmp_path: Path) -> None:
    save_result(sample([2, 2]), tmp_path / "one.safetensors")
    save_result(sample([1, 1], "other"), tmp_path / "other.safetensors")
    save_result(sample([1, 1, 1], "longer"), tmp_path / "longer.safetensors")
    names = [tmp_path / f"{name}.safetensors" for name in ("one", "other", "longer")]
    tasks = Page(make_report(names).html).data["tasks"]
    found = [[line["attack"] for line in task["attacks"]] for task in tasks]
    assert found == [["other", "pin"], ["longer"]]


def test_seeds_of_one_attack_are_one_line(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_folder(tmp_path / f"seed-{seed}", sample([1 + seed, 3], seed=seed))
    (task,) = Page(make_report([tmp_path]).html).data["tasks"]
    (line,) = task["attacks"]
    assert (line["seeds"], line["median_pixels"][0]) == (2, 2.25)


def test_the_fooled_images_of_several_seeds_are_their_mean(tmp_path: Path) -> None:
    for seed, changes in enumerate(([1, 3, 0], [1, 0, 0])):
        write_folder(tmp_path / f"seed-{seed}", sample(changes, seed=seed))
    page = make_report([tmp_path]).html
    assert "pin fooled 1.5 of 3 correctly classified images in the mean of 2 seeds: 50.0" in page
    assert "<td>1.5 of 3</td>" in page


def test_a_seed_that_lacks_images_because_of_errors_is_named(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [sample([1, 3]), sample([1, 3], seed=2)])
    add_run_with_an_error(store, sample([2, 2], seed=1), "out of memory")
    report = make_report([store])
    (line,) = Page(report.html).data["tasks"][0]["attacks"]
    assert (line["seeds"], line["left_out"], line["errors"]) == (2, [1], 1)
    assert (
        "1 row has an error. The numbers of pin are without seed 1, which lacks images because of "
        "errors."
    ) in report.html


def test_an_attack_on_skipped_images_alone_has_no_passes(tmp_path: Path) -> None:
    result = sample([0, 0])
    wrong = replace(result, goal=Goal((result.goal.labels + 1) % 10))
    page = make_report([write_store(tmp_path / "store", [wrong])]).html
    line = page[page.index('<th scope="row">pin') :]
    assert f"<td>{_NONE} + {_NONE}</td><td>{_NONE}</td>" in line[: line.index("</tr>")]
    assert f"<dt>passes per image</dt><dd>{_NONE}</dd>" in page


def test_an_attack_with_errors_alone_has_no_median(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [sample([1, 2])], error="out of memory")
    page = make_report([store], made_from="my store").html
    broken = page[page.index('<th scope="row">broken') :]
    assert "∞" not in broken[: broken.index("</tr>")]
    assert "broken failed on" not in page
    assert "from my store." in page
    assert str(tmp_path) not in page


def test_the_number_of_images_is_bounded_and_stated(store: Path) -> None:
    whole, some, none = (make_report([store], images=images) for images in (None, 2, 0))
    assert (whole.images, some.images, none.images) == (4, 2, 0)
    assert str(some).startswith("2 of 4 images, ")
    assert whole.size > some.size > none.size
    assert Page(none.html).data["tasks"][0]["attacks"][0]["images"] == 4  # plots are over all
    with pytest.raises(BadInput, match="at least 0"):
        make_report([store], images=-1)


def test_the_size_is_bounded_where_no_image_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "failed", sample([0, 0, 0, 0]))
    assert make_report([folder]).images == 4
    monkeypatch.setattr("pinprick.pages.gallery._DEFAULT_BYTES", 2000)  # two pictures of 28 px
    assert make_report([folder]).images == 2


def test_a_page_without_pictures_is_small(store: Path) -> None:
    assert make_report([store], images=0).size < 150_000


def test_every_style_and_script_of_the_folder_is_used() -> None:
    assert {path.stem for path in FOLDER.glob("*.css")} == set(STYLES)
    assert {path.stem for path in FOLDER.glob("*.js")} == set(modules("report"))
    joined = script("report")
    assert not re.search(r"^(import|export) ", joined, re.MULTILINE)
    for name in modules("report"):
        assert joined.count(f"const module_{name} = ") == 1


def test_a_module_exports_what_others_import() -> None:
    for name in modules("report"):
        source = (FOLDER / f"{name}.js").read_text()
        for names, wanted in re.findall(r'import \{ ([^}]+) \} from "\./(\w+)\.js"', source):
            other = (FOLDER / f"{wanted}.js").read_text()
            for one in names.split(", "):
                assert re.search(
                    rf"^export (async )?(const|function) {one}\b", other, re.MULTILINE
                ), one
