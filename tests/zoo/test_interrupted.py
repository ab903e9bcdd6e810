"""A saving that is killed at any moment leaves the old model, the new one, or a clear refusal."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from killing import KilledError, killed_at
from torch import Tensor, nn

from pinprick import BadInput
from pinprick.zoo import load_model, saved_folder
from pinprick.zoo.card import ModelCard
from pinprick.zoo.nets import build_net
from pinprick.zoo.saved_folder import save_model
from zoo.conftest import CARD

NEW = ModelCard(**{**vars(CARD), "mean": (0.5,), "facts": {"data": "new"}})
WHOLE, SHARDS = 15.0, 0.05


@pytest.fixture
def other() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return build_net("mnist_cnn").eval()


def answer(folder: Path, digits: Tensor) -> Tensor | None:
    """What the model says; None if it is refused, in one line."""
    try:
        model = load_model(f"file:{folder}")
    except BadInput as error:
        message = str(error)
    else:
        with torch.no_grad():
            return model(digits)
    assert "\n" not in message
    return None


def forget_digests(folder: Path) -> None:
    """Make the folder what older versions left."""
    path = folder / "card.json"
    card = json.loads(path.read_text())
    del card["sha256"]
    path.write_text(json.dumps(card))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "old"),
    [
        (WHOLE, WHOLE, False),
        (WHOLE, SHARDS, True),
        (SHARDS, WHOLE, True),
        (SHARDS, SHARDS, False),
    ],
)
def test_old_weights_never_go_with_a_new_card_nor_the_other_way_round(
    net: nn.Module,
    other: nn.Module,
    digits: Tensor,
    tmp_path: Path,
    first: float,
    second: float,
    old: bool,
) -> None:
    save_model(net, CARD, tmp_path / "old", shard_mb=first)
    save_model(other, NEW, tmp_path / "new", shard_mb=second)
    if old:
        forget_digests(tmp_path / "old")
    before, after = answer(tmp_path / "old", digits), answer(tmp_path / "new", digits)
    assert before is not None
    assert after is not None
    place = tmp_path / "place"
    at, seen = 0, set()
    while True:
        at += 1
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(tmp_path / "old", place)
        try:
            with killed_at(at, (saved_folder, "save_file")):
                save_model(other, NEW, place, shard_mb=second)
            break  # it came to its end
        except KilledError:
            found = answer(place, digits)
            assert found is None or torch.equal(found, before) or torch.equal(found, after), at
            seen.add("refused" if found is None else "old" if torch.equal(found, before) else "new")
        if found is not None and at % 4:
            continue
        save_model(other, NEW, place, shard_mb=second)  # again, and what was left is no hindrance
        assert {path.name for path in place.iterdir()} == {
            path.name for path in (tmp_path / "new").iterdir()
        }
        again = answer(place, digits)
        assert again is not None
        assert torch.equal(again, after)
    assert at > 10
    assert {"old", "new"} <= seen


def test_weights_are_on_the_disk_before_they_take_the_place_of_others(
    net: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    replace = Path.replace

    def noted(path: Path, to: Path) -> Path:
        order.append(f"-> {to.name}")
        return replace(path, to)

    monkeypatch.setattr(saved_folder, "sync", lambda path: order.append(path.name))
    monkeypatch.setattr(saved_folder, "sync_folder", lambda path: order.append("folder"))
    monkeypatch.setattr(Path, "replace", noted)
    save_model(net, CARD, tmp_path)
    assert order == [
        "model.safetensors",
        "card.json",
        "-> card.json",
        "folder",
        "-> model.safetensors",
        "folder",
    ]


@pytest.mark.parametrize("shard_mb", [WHOLE, SHARDS])
def test_weights_of_another_saving_beside_a_card_are_refused(
    net: nn.Module, other: nn.Module, tmp_path: Path, shard_mb: float
) -> None:
    save_model(net, CARD, tmp_path / "a", shard_mb=shard_mb)
    save_model(other, NEW, tmp_path / "b", shard_mb=shard_mb)
    shutil.copy(tmp_path / "a" / "card.json", tmp_path / "b" / "card.json")
    with pytest.raises(BadInput, match=r"is not the file that card.json was saved with: .*sha256"):
        load_model(f"file:{tmp_path / 'b'}")
    forget_digests(tmp_path / "b")
    assert load_model(f"file:{tmp_path / 'b'}").mean == CARD.mean


def test_a_byte_that_changed_is_found(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path)
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(BadInput, match=r"is not the file that card.json was saved with"):
        load_model(f"file:{tmp_path}")


def test_a_card_may_still_be_written_by_hand(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path)
    card = json.loads((tmp_path / "card.json").read_text())
    (tmp_path / "card.json").write_text(json.dumps({**card, "classes": list("abcdefghij")}))
    assert load_model(f"file:{tmp_path}").classes == tuple("abcdefghij")


def test_a_file_of_another_name_beside_a_card_is_not_held_against_it(
    net: nn.Module, tmp_path: Path
) -> None:
    save_model(net, CARD, tmp_path)
    torch.save(net.state_dict(), tmp_path / "best.pt")
    assert load_model(f"file:{tmp_path / 'best.pt'}").mean == CARD.mean
