"""The paper's claims and ablations: what pages say of two samples is on images that both fool."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from paper_samples import sample

from generators.paper import answers, claims, printed, sweeps, text
from generators.paper.rows import Layout, Rows, Sample, fooled_by_both, layout
from pinprick.attacks.build import build


def test_elements_are_compared_on_images_that_both_attacks_fool() -> None:
    first = sample([3, 1, 2], [30.0, 10.0, math.inf])
    second = sample([1, 2, 3], [4.0, 5.0, 6.0])
    mine, theirs = fooled_by_both(first, second)
    assert (mine.image.tolist(), mine.elements.tolist()) == ([1, 3], [10.0, 30.0])
    assert (theirs.image.tolist(), theirs.elements.tolist()) == ([1, 3], [4.0, 6.0])
    assert mine.rows["index"] == [1, 3]


def _variants(fooled: Mapping[str, list[int]]) -> Iterator[tuple[Any, Sample]]:
    """Variants of the printed attack that fool these of 12 images, with one element each."""
    given = {"as printed": {}, "clipping": {"rule": "clip"}, "plain ReLU": {"relu": "plain"}}
    given |= {"no ReLU": {"relu": "none"}, "straight-through": {"slope": "straight_through"}}
    given["hard-concrete"] = {"slope": "hard_concrete"}
    starts = {"FGSM": "fgsm", "PGD": "pgd", "MI-FGSM": "mifgsm", "random signs": "random_sign"}
    parts = {"start": "ifgsm", "rule": "box", "relu": "tailored", "slope": "gaussian"}
    for name, change in (
        given | {f"start {one}": {"start": of} for one, of in starts.items()}
    ).items():
        about = SimpleNamespace(**parts | change)
        about.start = SimpleNamespace(card=SimpleNamespace(name=about.start))
        elements = [1.0 if image in fooled[name] else math.inf for image in range(12)]
        yield about, sample(list(range(12)), elements)


def test_starts_that_fool_significantly_more_are_counted() -> None:
    fooled = {name: [0, 1] for name in claims.VARIANTS} | {"start PGD": list(range(12))}

    class Found(Layout):
        def each(self, model: str) -> Any:
            return _variants(fooled) if model == printed.RESNET20 else iter(())

    plan = layout("claims", Rows(Path("none")))
    said = claims.variants_in_short(Found(plan.plan, plan.run, plan.rows))
    assert "Other starts fool 16.7 % to 100 %. 1 of 4 differ significantly" in said[0]
    fooled["start PGD"] = [0, 1, 2]
    said = claims.variants_in_short(Found(plan.plan, plan.run, plan.rows))
    assert "0 of 4 differ significantly" in said[0]


class _Sweep(Layout):
    def each(self, model: str) -> Any:
        for lam, fooled in ((10.0, 4), (1e5, 1)):
            elements = [1.0] * fooled + [math.inf] * (4 - fooled)
            spec = {"name": "wifgsm_printed", "preset": "imagenet", "lam": lam}
            yield build(spec), sample([0, 1, 2, 3], elements)


def _many(elements: list[float]) -> Sample:
    """A sample of ten images for each number of elements."""
    return sample(list(range(10 * len(elements))), [one for one in elements for _ in range(10)])


def test_the_direction_of_lambda_is_that_of_the_rows() -> None:
    plan = layout("ablations", Rows(Path("none")))
    said = answers.figure7(plan)[3]
    assert said.endswith("is that of a convention that is not measured.")
    found = sweeps.sweep(_Sweep(plan.plan, plan.run, plan.rows), printed.LITE0, 4 / 255, "lam")
    assert [value for value, _ in found] == [10.0, 1e5]
    few = [text.DASH] * 3 + ["too few are fooled"]
    assert sweeps._trend(found) == ["10 to 100000", *few]  # 4 images and 1
    many, less, none = _many([3.0, 5.0]), _many([2.0, math.inf]), _many([math.inf, math.inf])
    assert sweeps._trend([(0.1, many), (1.0, less), (10.0, none)]) == [
        "0.1 to 1",
        "100 % to 50 %",
        "3 to 2",  # of the ten images that both fool
        "10",
        "yes",
    ]
    assert sweeps._trend([(0.1, many), (1.0, _many([4.0, math.inf]))])[-1] == "no"


def test_the_direction_of_a_and_tau_is_told_from_the_ends_of_a_sweep() -> None:
    class Swept(Layout):
        def each(self, model: str) -> Any:
            if model == printed.RESNET20:
                for tau, needed in ((0.2, [3.0, 5.0]), (0.4, [2.0, math.inf])):
                    spec = {"name": "wifgsm_printed", "preset": "cifar10", "tau": tau}
                    yield build(spec), _many(needed)

    plan = layout("ablations", Rows(Path("none")))
    assert sweeps.holds(plan, "tau") == "That is not measured."
    said = sweeps.holds(Swept(plan.plan, plan.run, plan.rows), "tau")
    assert said.startswith("Of 1 sweeps here, it is sparser in 1 and fools fewer images in 1,")
