"""Takes the exam again for stored models, and makes the tables of models from their cards.

    python benchmarks/cards.py exam --model pinprick:mnist_cnn --data mnist.safetensors [--out DIR]
    python benchmarks/cards.py pages

``exam`` measures the model with the settings on its card, those that are younger than the card at
their defaults, and writes the card again: results and exam settings are new, the facts of the
training stay. Without ``--out`` the card beside the weights is replaced; with it, the card is
written to ``DIR/NAME.json``. ``--data`` is what ``pinprick train`` takes.

``pages`` fills the tables of docs/training.md and docs/cards/README.md with what the cards of
shipped models and those in docs/cards say. Each table stands between two comments.
"""

import argparse
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn

from pinprick import __version__, load_model
from pinprick.files import write_text
from pinprick.train.exam import evaluate
from pinprick.train.material import fingerprint, read_material
from pinprick.train.plan import build_plan, describe_plan, read_plan, what_decides
from pinprick.zoo import shipped
from pinprick.zoo.card import ModelCard, read_card
from pinprick.zoo.facts import accuracy_under, l0_attack, percent
from pinprick.zoo.saved_folder import CARD

ROOT = Path(__file__).parent.parent
PUBLISHED = ROOT / "docs" / "cards"
PAGES = (ROOT / "docs" / "training.md", PUBLISHED / "README.md")
TABLE = re.compile(r"(?<=<!-- table: )(\w+)( -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
NETS = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "vgg16": "VGG-16", "vgg19": "VGG-19"}
RECIPES = {"pgd_at": ", PGD-AT", "fast_at": ", Fast-AT", "sparse_at": ", Sparse-AT"}
STORES = {"float16": " --half", "int8": " --store int8"}

Facts = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    exam = commands.add_parser("exam", help="measure models again and write their cards")
    exam.add_argument("--model", nargs="+", required=True, help="pinprick:NAME or file:FOLDER")
    exam.add_argument("--data", required=True)
    exam.add_argument("--root", type=Path)
    exam.add_argument("--out", type=Path)
    exam.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    commands.add_parser("pages", help="fill the tables of the pages from the cards")
    options = parser.parse_args()
    if options.command == "pages":
        for page in PAGES:
            page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
        return
    material = read_material(options.data, root=options.root)
    for name in options.model:
        folder = folder_of(name)
        card = read_card((folder / CARD).read_text(encoding="utf-8"), str(folder / CARD))
        model = load_model(name)
        assert isinstance(model.net, nn.Module)
        model.net.to(options.device)
        exam_ = read_plan(card.facts["training"]).exam
        results = evaluate(exam_, model, material.test, seed=card.facts["seed"])
        results |= {"tested_on": fingerprint(material.test)}
        card = examined(card, results, asdict(exam_), device_name(options.device))
        path = folder / CARD if options.out is None else options.out / f"{folder.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, card.as_json() + "\n")
        print(f"{name}: {json.dumps(results)}", flush=True)


def folder_of(name: str) -> Path:
    """Where the weights and the card of a model lie."""
    source, _, rest = name.partition(":")
    folder = shipped.FOLDER / rest if source == "pinprick" else Path(rest)
    if source not in ("pinprick", "file") or not (folder / CARD).is_file():
        raise SystemExit(f"{name} has no {CARD}; give pinprick:NAME or file:FOLDER")
    return folder


def examined(
    card: ModelCard, results: dict[str, Any], exam: dict[str, Any], device: str
) -> ModelCard:
    """The card with new results, and with the settings and the surroundings they came from."""
    facts = {**card.facts, **results}
    facts["training"] = {**card.facts["training"], "exam": exam}
    facts["examined"] = {
        "device": device,
        "pinprick": __version__,
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "python": platform.python_version(),
    }
    return replace(card, facts=facts)


def device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def filled(page: str) -> str:
    """The page with every table made anew."""
    return TABLE.sub(lambda found: found[1] + found[2] + TABLES[found[1]]() + "\n", page)


def reached() -> str:
    """What every model reaches, shipped or not."""
    cards = {f"`pinprick:{name}`": shipped.card(name) for name in shipped.names()}
    cards |= {f"CIFAR-10 {title(card.facts)}": card for card in published().values()}
    columns = (
        "model",
        "clean",
        "PGD",
        "stronger PGD",
        "l0, 10 elements",
        "l0, 24 elements",
        "l0 by",
        "images",
    )
    return table(
        columns,
        [
            (name, *measured(card.facts), l0_attack(card.facts), images_of(card.facts))
            for name, card in cards.items()
        ],
    )


def trained() -> str:
    """The models that are not shipped: how each is made, what it reaches, on how many images."""
    columns = (
        *("model", "command", "accuracy", "PGD", "stronger PGD", "l0, 10", "l0, 24", "l0 by"),
        *("Pinprick alone, 10 and 24", "images", "seconds", "device", "card"),
    )
    rows = []
    for name, card in published().items():
        facts = card.facts
        rows.append(
            (
                title(facts),
                f"`{command_of(facts)}`",
                *measured(facts),
                l0_attack(facts),
                alone(facts),
                images_of(facts),
                str(facts["seconds"]),
                facts["device"],
                f"[{name}.json]({name}.json)",
            )
        )
    return table(columns, rows)


def smoothing() -> str:
    """The same network with smoothed labels and without."""
    smoothed = ROOT / "results" / "label_smoothing" / "cifar10_vgg16.json"
    cards = (
        read_card(smoothed.read_text(encoding="utf-8"), smoothed.name),
        published()["cifar10_vgg16"],
    )
    columns = ("VGG-16, label smoothing", "clean", "PGD", "stronger PGD", "images")
    return table(
        columns,
        [
            (
                str(card.facts["training"]["schedule"]["label_smoothing"]),
                *measured(card.facts)[:3],
                images_of(card.facts),
            )
            for card in cards
        ],
    )


TABLES = {"reached": reached, "trained": trained, "smoothing": smoothing}


def published() -> dict[str, ModelCard]:
    paths = sorted(PUBLISHED.glob("*.json"))
    return {path.stem: read_card(path.read_text(encoding="utf-8"), path.name) for path in paths}


def title(facts: Facts) -> str:
    net = facts["training"]["net"]
    return NETS.get(net, net) + RECIPES.get(facts["recipe"], "")


def measured(facts: Facts) -> tuple[str, ...]:
    """Accuracy, accuracy under the two PGDs and with few elements changed, in percent."""
    few = (facts.get("l0_elements") or {}).get("accuracy") or {}
    return (
        percent(facts["accuracy"]),
        accuracy_under(facts["pgd"]),
        accuracy_under(facts.get("strong_pgd") or {}),
        percent(few.get("10")),
        percent(few.get("24")),
    )


def alone(facts: Facts) -> str:
    few = facts["l0_elements"]
    shares = few.get("pinprick_accuracy") or few["accuracy"]
    return f"{percent(shares['10'])}, {percent(shares['24'])}"


def images_of(facts: Facts) -> str:
    """Test images for accuracy and PGD, for the stronger PGD and for the l0 accuracy."""
    parts = (facts.get(name) or {} for name in ("pgd", "strong_pgd", "l0_elements"))
    return ", ".join(str(part.get("images", "-")) for part in parts)


def command_of(facts: Facts) -> str:
    """The command that trains the model: three names, and what differs from their preset."""
    plan = read_plan(facts["training"])
    names = {"data": plan.data, "net": plan.net, "recipe": plan.recipe.name}
    own = what_decides(describe_plan(plan))
    preset = what_decides(describe_plan(build_plan(**names)))
    words = f"pinprick train --data {plan.data} --net {plan.net}"
    words += "" if plan.recipe.name == "standard" else f" --recipe {plan.recipe.name}"
    for home in ("recipe", "schedule", "exam"):
        for key, value in own[home].items():
            if value != preset[home][key]:
                text = json.dumps(value).replace("null", "none").replace(" ", "")
                words += f" --option {key}={text}"
    words += f" --seed {plan.seed}" if plan.seed else ""
    return words + STORES.get(facts.get("weights", ""), "")


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    assert all(len(row) == len(columns) for row in rows), "a row has more cells than the heading"
    lines = (columns, ("---",) * len(columns), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
