"""Lists of files and labels, in the layout of the NIPS-2017 competition or a plain one."""

from pathlib import Path

import pytest
from PIL import Image

from pinprick import BadInput
from pinprick.data import load_data
from pinprick.data.check import count_by_class

NIPS = "ImageId,URL,TrueLabel,TargetClass\nab12,https://a.b/c,306,779\ncd34,,1,1000\n"


def write(folder: Path, text: str) -> str:
    (folder / "list.csv").write_text(text)
    return f"csv:{folder / 'list.csv'}"


def test_classes_of_the_nips_layout_count_from_1(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for name in ("ab12", "cd34"):
        Image.new("RGB", (2, 2)).save(tmp_path / "images" / f"{name}.png")
    data = load_data(write(tmp_path, NIPS))
    assert data.labels.tolist() == [305, 0]
    assert data.targets is not None
    assert data.targets.tolist() == [778, 999]
    assert data.classes[0] == "tench"
    assert [file.relative_to(tmp_path) for file in data.files] == [
        Path("images/ab12.png"),
        Path("images/cd34.png"),
    ]
    cut = data[1:]
    assert cut.targets is not None
    assert cut.targets.tolist() == [999]


def test_a_plain_list_has_numbers_from_0_or_words(tmp_path: Path) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "a.png")
    words = load_data(write(tmp_path, "label,file\nhen,a.png\ncat,sub/b.jpg\nhen,c.png\n"))
    assert (words.classes, words.labels.tolist()) == (("cat", "hen"), [1, 0, 1])
    assert words.files[0] == tmp_path / "a.png"
    numbers = load_data(write(tmp_path, "\ufefffile,label\na.png,2\nb.png,0\n"))
    assert (numbers.classes, numbers.labels.tolist()) == ((), [2, 0])
    assert numbers.class_name(2) == "class 2"


def test_a_large_number_takes_no_memory(tmp_path: Path) -> None:
    data = load_data(write(tmp_path, "file,label\na.png,999999999\n"))
    assert data.labels.tolist() == [999999999]
    assert count_by_class(data) == {"class 999999999": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NIPS.replace("306", "1001"), "TrueLabel in line 2 of .* from 1 to 1000, got '1001'"),
        (NIPS.replace("306", "0"), "TrueLabel in line 2 of .* from 1 to 1000, got '0'"),
        (NIPS.replace("1000", "cat"), "TargetClass in line 3 of .*, got 'cat'"),
        ("file,label\na.png,1\nb.png,cat\n", "label in line 3 of .* from 0, got 'cat'"),
        ("file,label\na.png,1\nb.png,1.0\n", r"label in line 3 of .* from 0, got '1\.0'"),
        ("file,label\na.png,1.0\nb.png,2.0\n", r"label in line 2 of .* from 0, got '1\.0'"),
        ("file,label\na.png,cat\nb.png,-1\n", "label in line 2 of .* from 0, got 'cat'"),
        ("file,label\na.png,-1\nb.png,-1\n", "label in line 2 of .* from 0, got '-1'"),
        ("file,label\na.png,1\nb.png,²\n", "label in line 3 of .* from 0, got '²'"),
        (f"file,label\na.png,{'9' * 5000}\n", "label in line 2 of .* from 0, got '999"),
        ("file,label\na.png,cat\nb.png,\n", "label in line 3 of .* is empty"),
        ("file,label\na.png,cat\nb.p", "line 3 of .* has 1 fields and its header 2"),
        ("name,class\na,b\n", "must have the columns ImageId and TrueLabel, or file and label"),
        ("file,label,label\na.png,0,1\n", "has 2 columns called label; remove all but one"),
        ("file,label,file\na.png,0,b.png\n", "has 2 columns called file"),
        (NIPS.replace("URL", "TrueLabel"), "has 2 columns called TrueLabel"),
        ("ImageId,TrueLabel,file,label\na,1,b,2\n", "has the columns of two layouts"),
        ("file,label\na.png,1\n,2\n", "file in line 3 of .* is empty"),
        ("ImageId,TrueLabel\n,2\n", "ImageId in line 2 of .* is empty"),
        ("file,label\n\na.png,1\n\nb.png,-1\n", "label in line 5 of .*, got '-1'"),
        ('file,label\n"a\nb.png",1\nb.png,-1\n', "label in line 4 of .*, got '-1'"),
        (f"file,label\n{'x' * 5000},1\n", "file in line 2 of .* is no name of a file"),
        ("file,label\n", "lists no pictures"),
        ("", "lists no pictures"),
        ('file,label\n"a.png,1\n', "is no CSV file"),
    ],
)
def test_a_list_that_is_wrong_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        load_data(write(tmp_path, text))


def test_columns_that_are_not_read_may_be_called_alike(tmp_path: Path) -> None:
    assert load_data(write(tmp_path, "file,label,,\na.png,1,,\n")).labels.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "files"), [("a.png", ("a.png", "images/a.png")), ("a", ("a.png", "a.jpg"))]
)
def test_a_name_of_two_files_is_refused(tmp_path: Path, name: str, files: tuple[str, ...]) -> None:
    (tmp_path / "images").mkdir()
    for file in files:
        Image.new("RGB", (2, 2)).save(tmp_path / file)
    text = f"file,label\nb.png,1\n{name},1\n"
    message = rf"file in line 3 of .* may be .*{files[0]} or .*{files[1]}; give its path or suffix"
    with pytest.raises(BadInput, match=message):
        load_data(write(tmp_path, text))
    full = tmp_path / files[1]
    assert load_data(write(tmp_path, f"file,label\n{full},1\n")).files == (full,)


def test_a_file_whose_whole_name_is_given_needs_no_suffix(tmp_path: Path) -> None:
    for name in ("a", "a.png"):
        Image.new("RGB", (2, 2)).save(tmp_path / name, "PNG")
    assert load_data(write(tmp_path, "file,label\na,1\n")).files == (tmp_path / "a",)


def test_a_list_has_no_training_split_and_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="without a training split"):
        load_data(write(tmp_path, NIPS), split="train")
    with pytest.raises(BadInput, match=r"gone\.csv: there is no such file"):
        load_data(f"csv:{tmp_path / 'gone.csv'}")
