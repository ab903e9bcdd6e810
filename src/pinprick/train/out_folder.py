"""The folder that a training writes to: made by a training of pinprick, or left alone."""

from pathlib import Path

from pinprick.errors import BadInput
from pinprick.train.checkpoint import CHECKPOINT
from pinprick.zoo import load_file
from pinprick.zoo.saved_folder import CARD, foreign_files, weights_files


def check_folder(out: Path) -> bool:
    """Whether a training was begun in ``out``; raises ``BadInput`` for a folder of other things.

    A folder without a checkpoint and without a card must be empty, but for hidden files. With
    one of them it holds a training. Files that this does not write may then lie beside it.
    """
    if not out.is_dir():
        return False
    if foreign := foreign_files(out):
        raise BadInput(
            f"{out} holds files of another model ({_some(foreign)}); choose another folder"
        )
    begun = (out / CHECKPOINT).exists()
    if not begun and not (out / CARD).exists():
        names = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
        if names:
            raise BadInput(
                f"{out} holds files that no training made ({_some(names)}); choose another folder"
            )
    return begun


def holds_model(out: Path) -> bool:
    """Whether the model in ``out`` is there; one whose weights are others is refused."""
    if not weights_files(out):
        return False
    try:
        load_file.load(str(out))
    except BadInput as error:
        raise BadInput(f"{error}; to train again, move the weights away") from None
    return True


def lost_weights(out: Path) -> bool:
    """Whether a training has ended in ``out`` and its weights are gone."""
    return (out / CARD).exists() and not (out / CHECKPOINT).exists() and not weights_files(out)


def _some(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (" and more" if len(names) > most else "")
