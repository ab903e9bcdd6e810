"""What a page may choose from: models by listed names, attacks with their efforts and units."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from pinprick.attacks import ATTACKS
from pinprick.attacks.build import build
from pinprick.attacks.card import Attack, norm_and_units
from pinprick.errors import BadInput, UnknownName
from pinprick.settings import types_of
from pinprick.zoo.registry import SOURCES, list_models

_FIRST = ("pinprick", "auto", "greedy", "sparse_rs", "sigma_zero")  # at the top of the list
_WITHOUT = ("egs_tssa",)  # needs a network of its own from a file


def list_model_names(further: Sequence[str] = ()) -> list[str]:
    """Names of models that load without a download: ``further``, the demo's, shipped, cached."""
    demo = [one.name for one in SOURCES if one.name == "efficientnet_lite0" and one.ready]
    shipped = [str(one["name"]) for one in list_models("pinprick")]
    return list(dict.fromkeys([*further, *demo, *shipped, *_downloaded()]))


def _downloaded() -> list[str]:
    """Models of torchvision whose default weights are on this machine."""
    from torch.hub import get_dir
    from torchvision.models import get_model_weights

    folder = Path(get_dir()) / "checkpoints"
    files = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    if not files:
        return []
    names = [str(one["name"]) for one in list_models("torchvision")]
    defaults = ((name, get_model_weights(name.partition(":")[2]).DEFAULT) for name in names)
    return [name for name, weights in defaults if Path(weights.url).name in files]


def list_attacks() -> list[dict[str, Any]]:
    """What the page needs to know of every attack."""
    names = [name for name in (*_FIRST, *ATTACKS) if name not in _WITHOUT]
    return [_facts(name, ATTACKS[name]) for name in dict.fromkeys(names)]


def _facts(name: str, cls: type[Attack]) -> dict[str, Any]:
    card = cls().facts()
    return {
        "name": name,
        "title": card.title,
        "norm": norm_and_units(cls),
        "needs": card.access,
        "targeted": card.targeted,
        "masked": card.masked,
        "efforts": _efforts(cls),
        "units": list(get_args(types_of(cls).get("unit"))),
    }


def _efforts(cls: type[Attack]) -> list[str]:
    """The first is used where none is chosen: a quick one, if there is one."""
    if cls.presets:
        return [*sorted(cls.presets, key=lambda name: name != "quick"), "published"]
    levels = [str(level) for level in get_args(types_of(cls).get("effort"))]
    return levels or ["published"]


def build_chosen(name: str, effort: str, unit: str) -> Attack:
    """The attack that the page chose, with values that survive in a PNG where it has a choice."""
    known = [one for one in ATTACKS if one not in _WITHOUT]
    if name not in known:
        raise UnknownName("attack", name, known)
    cls = ATTACKS[name]
    hints, spec = types_of(cls), {"name": name}
    efforts = _efforts(cls)
    effort = effort or efforts[0]
    if effort not in efforts:
        raise UnknownName(f"effort of {name}", effort, efforts)
    if effort in cls.presets:
        spec["preset"] = effort
    elif effort != "published":
        spec["effort"] = effort
    if unit:
        if unit not in get_args(hints.get("unit")):
            raise BadInput(f"{name} has no choice of unit {unit!r}")
        spec["unit"] = unit
    if "8bit" in get_args(hints.get("values")):
        spec["values"] = "8bit"
    return build(spec)
