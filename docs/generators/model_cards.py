"""The tables of models from their cards: those of shipped models, and those in docs/cards."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pinprick.report.docs_measured import markdown_table
from pinprick.train.plan import build_plan, describe_plan, read_plan, what_decides
from pinprick.zoo import shipped
from pinprick.zoo.card import ModelCard, read_card
from pinprick.zoo.facts import accuracy_under, l0_attack, percent

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "cards"
NETS = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "vgg16": "VGG-16", "vgg19": "VGG-19"}
DATA = {"cifar10": "CIFAR-10", "mnist": "MNIST"}
RECIPES = {"pgd_at": ", PGD-AT", "fast_at": ", Fast-AT", "sparse_at": ", Sparse-AT"}
STORES = {"float16": " --half", "int8": " --store int8"}

Facts = Mapping[str, Any]


def reached() -> str:
    """What every model reaches, shipped or not."""
    cards = {f"`pinprick:{name}`": shipped.card(name) for name in shipped.names()}
    cards |= {title(card.facts): card for card in published().values()}
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
    return markdown_table(
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
    return markdown_table(columns, rows)


def smoothing() -> str:
    """The same network with smoothed labels and without."""
    smoothed = ROOT / "results" / "label_smoothing" / "cifar10_vgg16.json"
    cards = (
        read_card(smoothed.read_text(encoding="utf-8"), smoothed.name),
        published()["cifar10_vgg16"],
    )
    columns = ("VGG-16, label smoothing", "clean", "PGD", "stronger PGD", "images")
    return markdown_table(
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


def published() -> dict[str, ModelCard]:
    paths = sorted(PUBLISHED.glob("*.json"))
    return {path.stem: read_card(path.read_text(encoding="utf-8"), path.name) for path in paths}


def title(facts: Facts) -> str:
    net: str = facts["training"]["net"]
    return f"{DATA[facts['data']]} {NETS.get(net, net)}{RECIPES.get(facts['recipe'], '')}"


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
    own = what_decides(describe_plan(plan))
    usual = build_plan(data=plan.data, net=plan.net, recipe=plan.recipe.name)
    preset = what_decides(describe_plan(usual))
    words = f"pinprick train --data {plan.data} --net {plan.net}"
    words += "" if plan.recipe.name == "standard" else f" --recipe {plan.recipe.name}"
    for home in ("recipe", "schedule", "exam"):
        for key, value in own[home].items():
            if value != preset[home][key]:
                text = json.dumps(value).replace("null", "none").replace(" ", "")
                words += f" --option {key}={text}"
    words += f" --seed {plan.seed}" if plan.seed else ""
    return words + STORES.get(facts.get("weights", ""), "")


def few_elements(facts: Facts, k: int, *, alone: bool = False) -> str:
    """Accuracy with at most k elements changed, in the worst case or by Pinprick alone."""
    return percent(facts["l0_elements"]["pinprick_accuracy" if alone else "accuracy"][str(k)])


def values() -> dict[str, Callable[[], str]]:
    """The values in the sentences of the page on training."""
    cards = published()
    standard, pgd_at, sparse_at = (
        cards[f"cifar10_resnet18{recipe}"].facts for recipe in ("", "_pgd_at", "_sparse_at")
    )
    ours = {name: shipped.card(name).facts for name in shipped.names()}
    fast = ours["mnist_cnn_fast_at"]["strong_pgd"]
    few = ours["mnist_cnn_pgd_at"]
    return {
        "sparse_at, accuracy": lambda: percent(sparse_at["accuracy"]),
        "sparse_at, pgd": lambda: percent(sparse_at["pgd"]["accuracy"]),
        **{f"sparse_at, l0 {k}": partial(few_elements, sparse_at, k) for k in (10, 24)},
        **{f"pgd_at, l0 {k}": partial(few_elements, pgd_at, k) for k in (10, 24)},
        **{
            f"{name}, pgd": partial(percent, ours[name]["pgd"]["accuracy"])
            for name in ("mnist_cnn", "fashion_cnn")
        },
        "mnist_cnn_fast_at, pgd alone": lambda: percent(fast["pgd_accuracy"]),
        "mnist_cnn_fast_at, strong_pgd": lambda: percent(fast["accuracy"]),
        "mnist_cnn_fast_at, images": lambda: str(fast["images"]),
        "mnist_cnn_pgd_at, pinprick alone": partial(few_elements, few, 10, alone=True),
        "mnist_cnn_pgd_at, l0 10": partial(few_elements, few, 10),
        "device": lambda: str(standard["device"]),
        "standard, seconds": lambda: str(standard["seconds"]),
        "standard, epochs": lambda: str(standard["epochs"]),
        "pgd_at, seconds": lambda: str(pgd_at["seconds"]),
        "pgd_at, epochs": lambda: str(pgd_at["epochs"]),
    }


PAGES = {
    "docs/how_to/robust_model.md": {"reached": reached, "smoothing": smoothing, **values()},
    "docs/cards/README.md": {"trained": trained},
}
