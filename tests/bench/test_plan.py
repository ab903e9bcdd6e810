"""A plan unfolds into cells, and every mistake in it is reported with its line."""

import textwrap
from pathlib import Path

import pytest

from bench.cells import CELL, cell_with
from bench.conftest import WritePlan
from pinprick.attacks.build import build
from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.bench.own_code_hash import own_code_hash
from pinprick.bench.plan_file import read_plan
from pinprick.bench.run_cell import run_cell
from pinprick.errors import BadInput

PLANS = Path(__file__).parents[2] / "plans"
GOOD = """\
models = ["pinprick:fashion_cnn"]
data = ["fashion_sample[:4]"]
attacks = ["greedy", {name = "sigma_zero", steps = 5}]
"""


def test_a_plan_is_a_product_of_all_its_lists(write_plan: WritePlan, cache: Cache) -> None:
    text = 'goals = ["untargeted", "random"]\nseeds = [0, 7]\nimages_per_cell = 3\n'
    cells = read_plan(write_plan(GOOD + text)).cells(cache)
    assert len(cells) == len({cell.key for cell in cells}) == 2 * 2 * 2 * 2
    assert {(cell.first, cell.last) for cell in cells} == {(0, 3), (3, 4)}
    assert {cell.attack["name"] for cell in cells} == {"greedy", "sigma_zero"}
    assert {(cell.goal, cell.seed) for cell in cells} == {
        (goal, seed) for goal in ("untargeted", "random") for seed in (0, 7)
    }
    assert {cell.data for cell in cells} == {"fashion_sample/test[0:4]"}
    assert len({cell.data_hash for cell in cells}) == 2


def test_a_cell_spells_out_every_setting(write_plan: WritePlan, cache: Cache) -> None:
    cell = read_plan(write_plan(GOOD)).cells(cache)[1]
    assert cell.attack["steps"] == 5
    assert cell.attack["lr"] == 1.0
    assert (cell.threads, cell.batch_size, cell.device, cell.code) == (1, 32, "cpu", "")


def test_products_share_the_keys_above_them(write_plan: WritePlan, cache: Cache) -> None:
    text = GOOD + "seeds = [3]\n[[product]]\nmax_forwards = 9\n[[product]]\nseeds = 4\n"
    cells = read_plan(write_plan(text)).cells(cache)
    assert {(cell.seed, cell.max_forwards) for cell in cells} == {(3, 9), (4, None)}


def test_a_cell_that_two_products_name_comes_once(write_plan: WritePlan, cache: Cache) -> None:
    assert len(read_plan(write_plan(f"{GOOD}[[product]]\n[[product]]\n")).cells(cache)) == 2


def test_a_changed_setting_changes_the_cells_of_that_attack_alone(
    write_plan: WritePlan, cache: Cache
) -> None:
    def keys(text: str) -> set[str]:
        return {cell.key for cell in read_plan(write_plan(text)).cells(cache)}

    before, after = keys(GOOD), keys(GOOD.replace("steps = 5", "steps = 6"))
    assert len(before & after) == 1


def test_a_cell_without_a_limit_on_all_passes_has_the_key_it_had_in_the_first_stores() -> None:
    assert CELL.key == "5d76028805ab2ad75d94885b11ed7886"
    limited = cell_with(max_passes=9)
    assert limited.key != CELL.key
    assert Cell.from_plain(limited.plain()) == limited
    assert Cell.from_plain(CELL.plain()) == CELL


def test_a_cell_at_another_speed_has_another_key() -> None:
    fast = cell_with(speed="fast")
    assert fast.key != CELL.key == cell_with(speed="exact").key
    assert Cell.from_plain(fast.plain()) == fast


def test_labels_go_by_number_where_names_differ(write_plan: WritePlan, cache: Cache) -> None:
    """Digits and clothes: the same shape, other names."""
    text = GOOD.replace("fashion_cnn", "mnist_cnn")
    with pytest.raises(BadInput, match=r"line 2: .*labels_by_number = true"):
        read_plan(write_plan(text)).cells(cache)
    cells = read_plan(write_plan(f"{text}labels_by_number = true\n")).cells(cache)
    assert [cell.labels_by_number for cell in cells] == [True, True]
    assert Cell.from_plain(cells[0].plain()) == cells[0]
    given = cache.images_of(cells[0])
    assert given.labels.equal(cache.dataset("pinprick:fashion_cnn", cells[0].data).labels)
    assert cell_with(labels_by_number=True).key != CELL.key
    rows, _ = run_cell(cells[1], cache)
    assert rows["label"].to_pylist() == given.labels.tolist()
    with pytest.raises(BadInput, match="labels_by_number must be true or false, got 1"):
        read_plan(write_plan(f"{text}labels_by_number = 1\n"))


def test_each_attack_runs_on_all_models_before_the_next(
    write_plan: WritePlan, cache: Cache
) -> None:
    other = "[[product]]\ndata = ['fashion_sample[4:6]']\n"
    text = f"images_per_cell = 2\n{GOOD}[[product]]\n{other}"
    cells = read_plan(write_plan(text)).cells(cache)
    assert [cell.attack["name"] for cell in cells] == ["greedy"] * 3 + ["sigma_zero"] * 3
    assert [cell.data_hash for cell in cells[:3]] == [cell.data_hash for cell in cells[3:]]


def test_an_own_attack_has_the_hash_of_its_code(
    write_plan: WritePlan, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = """
        from dataclasses import dataclass
        from typing import ClassVar
        from pinprick.attacks.card import Attack, Card

        @dataclass(frozen=True, kw_only=True)
        class Idle(Attack):
            card: ClassVar[Card] = Card(
                name="idle", title="Idle", norm="l0", unit="pixels", kind="minimal",
                access="labels", targeted=True, paper="",
            )

            def __call__(self, problem):
                return problem.images
        """

    def cell_of(file: str, ending: str) -> Cell:
        (tmp_path / file).write_text(textwrap.dedent(code) + ending)
        text = GOOD.replace('"greedy", {name = "sigma_zero", steps = 5}', f'"{file}:Idle"')
        return read_plan(write_plan(text)).cells(cache)[0]

    one, other = cell_of("one.py", ""), cell_of("other.py", "# changed")
    assert one.attack["name"] == "one.py:Idle"
    assert len(one.code) == len(other.code) == 64
    assert one.code != other.code


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('modles = ["x"]', "line 4: no key of a plan is called 'modles'; did you mean models?"),
        ("seeds = -1", "line 4: seeds must be a whole number of at least 0, got -1"),
        ("batch_size = 0", "line 4: batch_size must be a whole number of at least 1, got 0"),
        ("seeds = [0, 9223372036854775808]", "line 4: seeds must be at most 9223372036854775807"),
        ("batch_size = 9223372036854775808", "line 4: batch_size must be at most"),
        ("threads = 1025", "line 4: threads must be at most 1024, got 1025"),
        ("threads = true", "line 4: threads must be a whole number of at least 1, got True"),
        ('device = "tpu"', "line 4: device must be cpu or cuda, got 'tpu'"),
        ('goals = ["untargetted"]', "line 4: no goal is called 'untargetted'; did you mean untarg"),
        ("dense = 1", "line 4: dense must be true or false, got 1"),
        ("victims = [1]", r"line 4: victims must be a list of names, got \[1\]"),
        ("seeds = ]\n", r"is not TOML: .*line 4"),
        ("[product]", r"line 4: write \[\[product\]\]"),
        ("# seeds\n\n[[product]]\n# x\nsedes = 1", "line 8: no key of a plan is called 'sedes'"),
        ('victims = ["pinprick:fashion_cn"]', "line 4: .*fashion_cn"),
        (
            'goals = ["class 10"]',
            "line 4: pinprick:fashion_cnn has no class 10; its classes are 0 to 9",
        ),
        ('goals = ["class 9"]', "line 2: image 0 of fashion_sample/test is of class 9 already"),
    ],
)
def test_a_mistake_is_reported_with_its_line(
    write_plan: WritePlan, cache: Cache, text: str, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        read_plan(write_plan(GOOD + text)).cells(cache)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"greedy"', '"gredy"', "line 3: no attack is called 'gredy'; did you mean greedy"),
        ("steps = 5", "stepps = 5", "line 3: no option of sigma_zero is called 'stepps'; did you"),
        ("steps = 5", "steps = 0", "line 3: sigma_zero needs steps >= 1, got 0"),
        ("fashion_cnn", "fashion_cm", "line 1: .*did you mean fashion_cnn"),
        ("fashion_sample[:4]", "fashion_sampel", "line 2: no dataset is called 'fashion_sampel'"),
        ("fashion_sample[:4]", "fashion_sample[4", "line 2: a set is written NAME/SPLIT"),
        ("fashion_sample[:4]", "fashion_sample[:99]", "line 2: there is no image 98 among 64"),
        ('attacks = ["greedy"', 'attacks = [3, "greedy"', "line 3: attacks holds names and tables"),
        ('models = ["pinprick:fashion_cnn"]', "", "names no models; write models"),
    ],
)
def test_a_wrong_name_is_reported_with_its_line(
    write_plan: WritePlan, cache: Cache, old: str, new: str, message: str
) -> None:
    assert old in GOOD
    with pytest.raises(BadInput, match=message):
        read_plan(write_plan(GOOD.replace(old, new))).cells(cache)


def test_a_name_in_a_comment_is_not_taken_for_the_mistake(
    write_plan: WritePlan, cache: Cache
) -> None:
    text = "# gredy is fast\n" + GOOD.replace('"greedy"', '"gredy"')
    with pytest.raises(BadInput, match="line 4: no attack is called 'gredy'"):
        read_plan(write_plan(text))


def test_data_that_is_not_there_comes_with_the_command_that_gets_it(
    write_plan: WritePlan, tmp_path: Path
) -> None:
    path = write_plan(GOOD.replace("fashion_sample[:4]", "fashion_mnist[:4]"))
    with pytest.raises(BadInput, match=r"line 2: .*pinprick data get fashion_mnist"):
        read_plan(path).cells(Cache(tmp_path))


def test_an_attack_without_targets_is_refused_for_a_targeted_goal(write_plan: WritePlan) -> None:
    text = GOOD.replace('"greedy"', '"sparsefool"') + 'goals = ["random"]'
    with pytest.raises(BadInput, match="line 3: sparsefool cannot aim at a class"):
        read_plan(write_plan(text))


def test_victims_judge_all_models_but_themselves(
    write_plan: WritePlan, cache: Cache, numbered: str
) -> None:
    names = ["pinprick:mnist_cnn", "pinprick:mnist_cnn_pgd_at"]
    text = f'models = {names}\ndata = ["{numbered}"]\nattacks = ["greedy"]\nvictims = {names}\n'
    cells = read_plan(write_plan(text)).cells(cache)
    assert [tuple(name for name, _ in cell.victims) for cell in cells] == [
        (names[1],),
        (names[0],),
    ]
    assert cells[0].victims[0][1] == cells[1].weights


def test_a_victim_with_other_classes_is_refused(write_plan: WritePlan, cache: Cache) -> None:
    with pytest.raises(BadInput, match=r"line 4: .*mnist_cnn"):
        read_plan(write_plan(GOOD + 'victims = ["pinprick:mnist_cnn"]')).cells(cache)


def test_a_plan_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not text in UTF-8"):
        read_plan(tmp_path / "bytes.toml")


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_plans_of_the_project_can_be_read(path: Path) -> None:
    assert read_plan(path).products


def test_the_code_that_an_own_attack_derives_from_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base_of_mine.py").write_text(
        "from pinprick.attacks import Greedy\nclass Base(Greedy): ...\n"
    )
    Path("mine.py").write_text(
        "from dataclasses import dataclass\nfrom base_of_mine import Base\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Mine(Base):\n    '''Mine.'''\n"
    )
    attack = build("mine.py:Mine")
    before = own_code_hash(attack)
    Path("base_of_mine.py").write_text(Path("base_of_mine.py").read_text() + "# other\n")
    assert own_code_hash(attack) != before
    assert own_code_hash(build("greedy")) == ""


@pytest.mark.parametrize(
    ("key", "wanted", "device", "expected"),
    [
        ("precision", "tf32", "cpu", "float32"),
        ("precision", "tf32", "cuda", "tf32"),
        ("speed", "graphs", "cpu", "exact"),
        ("speed", "graphs", "cuda", "graphs"),
    ],
)
def test_only_a_gpu_has_tf32_and_another_speed(
    tmp_path: Path, key: str, wanted: str, device: str, expected: str
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        'models = ["pinprick:fashion_cnn"]\ndata = ["fashion_sample/test[0:2]"]\n'
        f'attacks = ["greedy"]\ndevice = "{device}"\n{key} = "{wanted}"\n',
        encoding="utf-8",
    )
    (cell,) = read_plan(path).cells()
    assert getattr(cell, key) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('precision = "bf16"', r"line 1: precision must be float32 or tf32, got 'bf16'"),
        ('speed = "faster"', r"line 1: speed must be exact or graphs or fast"),
    ],
)
def test_another_precision_or_speed_is_refused_with_its_line(
    tmp_path: Path, line: str, message: str
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        read_plan(path)


def test_what_cannot_be_loaded_is_left_out_and_named(write_plan: WritePlan, cache: Cache) -> None:
    path = write_plan("""\
        attacks = ["greedy"]
        data = ["fashion_sample[:2]"]
        [[product]]
        models = ["pinprick:fashion_cnn", "file:not/there"]
        [[product]]
        models = ["pinprick:fashion_cnn"]
        victims = ["file:not/here"]
        """)
    plan, missing = read_plan(path).without_missing(cache)
    assert {cell.model for cell in plan.cells(cache)} == {"pinprick:fashion_cnn"}
    assert [cell.victims for cell in plan.cells(cache)] == [()]
    assert [line.partition(": ")[2].split("; ")[0] for line in missing] == [
        "there is no file or folder not/there to load a model from",
        "there is no file or folder not/here to load a model from",
    ]
    assert "line 4" in missing[0]
    with pytest.raises(BadInput, match="not/there"):
        read_plan(path).cells(cache)
