"""The tables of models from their cards: those of shipped models, and those in docs/cards."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

from pinprick.report.docs_measured import markdown_table
from pinprick.train.plan import build_plan, describe_plan, read_plan, what_decides
from pinprick.zoo import shipped
from pinprick.zoo.card import ModelCard, read_card
from pinprick.zoo.facts import linf_attack, percent

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "cards"
NETS = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "vgg16": "VGG-16", "vgg19": "VGG-19"}
DATA = {"cifar10": "CIFAR-10", "mnist": "MNIST"}
RECIPES = {"fast_at": ", Fast-AT", "pgd_at": ", PGD-AT", "sparse_at": ", Sparse-AT"}
STORES = {"float16": " --half", "int8": " --store int8"}

Facts = Mapping[str, Any]


def reached() -> str:
    """What every model reaches, on how many images."""
    columns = ("model", "clean", "PGD", "stronger PGD", "l0, 10", "l0, 24", "images")
    rows = [(name, *measured(facts), images_of(facts)) for name, facts in all_models().items()]
    return markdown_table(columns, rows)


def alone() -> str:
    """What a single attack leaves correct, beside the worst case on the same images."""
    columns = ("model", "PGD", "stronger PGD", "Pinprick, 10", "l0, 10", "Pinprick, 24", "l0, 24")
    rows = []
    for name, facts in all_models().items():
        strong = facts.get("strong_pgd") or {}
        elements = [
            few_elements(facts, k, alone=single) for k in (10, 24) for single in (True, False)
        ]
        linf = (percent(strong.get("pgd_accuracy")), percent(strong.get("accuracy")))
        rows.append((name, *linf, *elements))
    return markdown_table(columns, rows)


def attacks() -> str:
    """The attacks that each model was measured with, and how long its training took."""
    rows = []
    for name, facts in all_models().items():
        first, second = facts["l0_elements"]["attacks"]
        assert first == "Pinprick, effort fast", first  # the page says so for all
        assert facts["device"] == "NVIDIA H200", name
        strong = linf_attack(facts["strong_pgd"]) if facts.get("strong_pgd") else "-"
        rows.append((name, linf_attack(facts["pgd"]), strong, second, f"{facts['seconds']:.0f} s"))
    columns = ("model", "PGD", "stronger PGD", "second l0 attack", "training")
    return markdown_table(columns, rows)


def commands() -> str:
    """The command that trains each model."""
    lines = [
        f"# {name.strip('`')}\n{wrapped(command_of(facts))}" for name, facts in all_models().items()
    ]
    return "\n".join(["```", *lines, "```"])


def recipes() -> str:
    """What the same network reaches by each recipe."""
    columns = ("recipe", "clean", "PGD", "stronger PGD", "l0, 10", "l0, 24", "training")
    names = ("cifar10_resnet18", *(f"cifar10_resnet18_{one}" for one in RECIPES))
    facts = [published()[name].facts for name in names]
    return markdown_table(
        columns,
        [(f"`{one['recipe']}`", *measured(one), f"{one['seconds']:.0f} s") for one in facts],
    )


def smoothing() -> str:
    """The same network with smoothed labels and without."""
    smoothed = ROOT / "results" / "label_smoothing" / "cifar10_vgg16.json"
    cards = (
        read_card(smoothed.read_text(encoding="utf-8"), smoothed.name),
        published()["cifar10_vgg16"],
    )
    columns = ("label smoothing", "clean", "PGD", "stronger PGD", "images")
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


def all_models() -> dict[str, Facts]:
    """The facts of every model by its name: those that are shipped, then the others."""
    models = {f"`pinprick:{name}`": shipped.card(name).facts for name in shipped.names()}
    return models | {title(card.facts): card.facts for card in published().values()}


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
        percent(facts["pgd"]["accuracy"]),
        percent((facts.get("strong_pgd") or {}).get("accuracy")),
        percent(few.get("10")),
        percent(few.get("24")),
    )


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


def wrapped(command: str) -> str:
    """The command on lines of at most 92 characters, broken before options."""
    lines = wrap(command.replace(" --option ", " --option="), 88, subsequent_indent=" " * 4)
    return " \\\n".join(lines).replace("--option=", "--option ")


def few_elements(facts: Facts, k: int, *, alone: bool = False) -> str:
    """Accuracy with at most k elements changed, in the worst case or by Pinprick alone."""
    return percent(facts["l0_elements"]["pinprick_accuracy" if alone else "accuracy"][str(k)])


def values() -> dict[str, Callable[[], str]]:
    """The values in the sentences of the page of cards."""
    ours = {name: shipped.card(name).facts for name in shipped.names()}
    fast = ours["mnist_cnn_fast_at"]["strong_pgd"]
    few = ours["mnist_cnn_pgd_at"]
    return {
        "mnist_cnn_fast_at, pgd alone": lambda: percent(fast["pgd_accuracy"]),
        "mnist_cnn_fast_at, strong_pgd": lambda: percent(fast["accuracy"]),
        "mnist_cnn_pgd_at, pinprick alone": partial(few_elements, few, 10, alone=True),
        "mnist_cnn_pgd_at, l0 10": partial(few_elements, few, 10),
    }


PAGES = {
    "docs/how_to/robust_model.md": {"recipes": recipes},
    "docs/cards/README.md": {
        "reached": reached,
        "attacks": attacks,
        "alone": alone,
        "smoothing": smoothing,
        "commands": commands,
        **values(),
    },
}
