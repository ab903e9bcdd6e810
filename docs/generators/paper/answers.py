"""The answers at the top of the pages, in sentences; the first line of each is for the summary."""

from collections.abc import Callable
from typing import Any

from generators.paper import claims, transfer
from generators.paper.printed import LITE0, RESNET18, published
from generators.paper.robust import ROBUST
from generators.paper.rows import Layout, Sample, on_shared_images
from generators.paper.sweeps import all_sweeps, holds, stated_by
from generators.paper.text import (
    NOT_MEASURED,
    first_of,
    fooling_rate,
    mean_of_fooled,
    mean_with_interval,
    percent,
)
from generators.paper.timing import in_short, kind_of_speedup, speedups
from pinprick.bench.plan import Product

SHOWN = ("wifgsm", "sigma_zero", "pinprick")
BUDGETS = (10, 24)


def sparsity(plan: Layout) -> list[str]:
    """Table 1."""
    samples = _shown(plan, RESNET18)
    if not samples:
        return [f"**Sparsity** is {NOT_MEASURED}."]
    n = next(iter(samples.values())).n
    known = [f"`{label}` {mean_of_fooled(one)}" for label, one in samples.items()]
    counts = [fewer_than_printed(plan, RESNET18, 0), fewer_than_printed(plan, LITE0, 1)]
    small, large = (f"{fewer} of {compared}" for fewer, compared in counts)
    paper = published()["table1"]["elements"]["wifgsm"]
    form = first_of(plan.find(LITE0, "untargeted", "wifgsm"))
    at_224 = NOT_MEASURED if form is None else f"{mean_with_interval(form.elements)}, n {form.n}"
    return [
        f"**On CIFAR-10**, {small} compared attacks need fewer elements here than the paper "
        f"prints. At 224 px it is {large}, on another network.",
        "Counted are attacks of the paper's table that fool every image here, untargeted, without "
        "its own.",
        f"**Mean elements on CIFAR-10** (n {n}): {', '.join(known)}. The paper prints {paper[0]} "
        "for its own.",
        f"**Our form of its attack at 224 px** needs {at_224}. The paper prints {paper[1]}.",
        as_printed(plan),
    ]


def _shown(
    plan: Layout, model: str, where: Callable[[Product], bool] = lambda one: True
) -> dict[str, Sample]:
    """What the attacks of the answers did, untargeted, on the images that all of them had."""
    found = {label: first_of(plan.find(model, "untargeted", label, where=where)) for label in SHOWN}
    known = {label: one for label, one in found.items() if one is not None}
    return on_shared_images(known)


def fewer_than_printed(plan: Layout, model: str, place: int) -> tuple[int, int]:
    """How many attacks need fewer elements than the paper prints, and how many are compared."""
    fewer = compared = 0
    for label, printed in published()["table1"]["elements"].items():
        if label == "wifgsm":  # our form is not the attack that was printed
            continue
        sample = first_of(plan.find(model, "untargeted", label))
        if sample is not None and sample.fooled.all() and isinstance(printed[place], int):
            compared += 1
            fewer += bool(sample.elements.mean() < printed[place])
    return fewer, compared


def as_printed(plan: Layout) -> str:
    sample = first_of(plan.find(RESNET18, "untargeted", "wifgsm_printed"))
    if sample is None:
        return f"**The attack as printed** is {NOT_MEASURED}."
    return (
        f"**As printed**, with τ 0.30 for all images, the paper's attack fools "
        f"{fooling_rate(sample)}. [Its page](../methods/wifgsm_printed.md) has τ per image."
    )


def robust(plan: Layout) -> list[str]:
    """Table 2."""
    model, place = ROBUST["CIFAR-10, PGD-AT"]
    paper = published()["table2"]["fooling_rate"]["wifgsm"][place]
    samples = _shown(plan, model, usual_start)
    lines = [
        "**On robust models** the paper states no budget. On CIFAR-10 under PGD-AT it prints "
        f"{paper} % fooled by its own attack."
    ]
    if not samples:
        return [f"{lines[0]} Ours are {NOT_MEASURED}."]
    n = next(iter(samples.values())).n
    for budget in BUDGETS:
        rates = [
            f"`{label}` {percent(float((one.elements <= budget).mean()))}"
            for label, one in samples.items()
        ]
        lines.append(f"**With {budget} elements** we measure {', '.join(rates)} (n {n}).")
    whole = [f"`{label}` {percent(float(one.fooled.mean()))}" for label, one in samples.items()]
    return [*lines, f"**With any number of elements** we measure {', '.join(whole)} (n {n})."]


def usual_start(one: Product) -> bool:
    """Products whose attacks start from 4/255."""
    return all(attack.card.name != "sparsefool" for attack in one.attacks)


def transfers(plan: Layout) -> list[str]:
    """Table 3."""
    mine, other = (claims.black_box_rate(plan, LITE0, label) for label in ("wifgsm", "ifgsm"))
    known = f"**Transfer** is {NOT_MEASURED} here."
    if mine is not None and other is not None:
        known = (
            f"**Transfer** from EfficientNet-Lite0 to three other networks: our form "
            f"{percent(mine)}, its start I-FGSM {percent(other)}."
        )
    own, start = transfer.black_box_means("vgg19")
    paper = published()["table3"]["vgg19"]
    return [
        f"{known} In the paper's own numbers I-FGSM transfers better than the attack that starts "
        f"from it: {start:.1f} % and {own:.1f} %.",
        "The paper's are means over three other networks, from VGG-19. Those of I-FGSM stand in "
        "comments of its source.",
        f"**To ResNet-101 and ResNet-152** the paper prints {paper['wifgsm'][2]} % and "
        f"{paper['wifgsm'][3]} % for its attack. I-FGSM has {paper['ifgsm'][2]} % and "
        f"{paper['ifgsm'][3]} %.",
    ]


def times(plan: Layout) -> list[str]:
    """Table 4."""
    kinds = [kind_of_speedup(*numbers) for numbers in speedups().values()]
    return [
        in_short(plan),
        f"**The paper prints {len(kinds)} speed-ups.** {kinds.count('mean of ratios')} are means "
        f"of ratios, and {kinds.count('ratio of sums')} are ratios of sums. "
        f"{kinds.count('neither')} follow from neither.",
    ]


def figure7(plan: Layout) -> list[str]:
    """The ablations."""
    points = sum(len(one) for sweeps in all_sweeps(plan).values() for one in sweeps)
    known = f"have {points} measured points" if points else f"are {NOT_MEASURED}"
    paper = published()["figure7"]
    titles = [f"the {title.removeprefix('λ, ')}" for title in stated_by(plan)]
    stated = " and ".join(titles) or "neither convention"
    return [
        "**Figures 1 and 3 to 6**: the paper does not name its images. The commands make the same "
        "figures of other photographs, shown below.",
        "**Figure 2** is a plot of q_a. It is made again below.",
        f"**Figure 7**: the ablations {known}.",
        "**λ**: its stated direction (more of it fools fewer images, with fewer elements) is that "
        f"of {stated if points else 'a convention that is ' + NOT_MEASURED}.",
        f"**a**: the paper says that a smaller a makes changes sparser and takes longer. It prints "
        f"{paper['a']['elements']} elements at {paper['a']['value']}. {holds(plan, 'a')}",
        f"**τ**: the paper says that a larger τ makes changes sparser and fools fewer images. It "
        f"prints {paper['tau']['elements']} elements and {paper['tau']['fooling_rate']} % at "
        f"{paper['tau']['value']:.2f}. {holds(plan, 'tau')}",
    ]


def near_optimal(table1: Layout, table3: Layout, plan: Layout) -> list[str]:
    """The claims."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in claims.optimum_rows():
        rows.setdefault(row["attack"]["name"], []).append(row)
    ratios = [claims.over_fewest(row) for row in rows["wifgsm"]]
    most = max(len(claims.fooled_pairs(row)) / row["n"] for row in rows["wifgsm_printed"])
    taus = {row["attack"]["tau"] for row in rows["wifgsm_printed"]}
    best = max(claims.over_fewest(row) for row in rows["pinprick"])
    auto = claims.over_auto(table1, plan, RESNET18, "wifgsm")[0]
    return [
        f"**Near-optimality**: on small networks our form of the attack needs {min(ratios):.2f} to "
        f"{max(ratios):.2f} times the proved fewest elements.",
        f"**As printed**, with τ fixed ({len(taus)} values tried), it fools at most "
        f"{percent(most)} of the images of these networks. Pinprick needs at most {best:.2f} times "
        "the fewest.",
        f"**On CIFAR-10**, elements of our form over those of `auto` with preset `quick`: {auto}.",
        *claims.variants_in_short(plan),
        claims.transfer_in_short(table3),
    ]
