"""Attack pictures and explain what each changed pixel does: figures and explanation.json."""

from collections.abc import Iterator
from pathlib import Path

from pinprick.attacks.card import Attack
from pinprick.data.pictures import Unreadable
from pinprick.explain.maps.class_maps import as_method
from pinprick.explain.noise.explain_noise import check_scores
from pinprick.jobs.attack_group import RunOptions, attack_group, settle_threads
from pinprick.jobs.device import load_on_device
from pinprick.jobs.explain_batches import (
    Batches,
    ExplainOutcome,
    choose_figures,
    explain_batches,
    make_settings,
)
from pinprick.jobs.output import open_out
from pinprick.jobs.pictures import PictureGroup, PictureSource, choose_data, read_groups
from pinprick.jobs.progress import Progress
from pinprick.model import Classifier
from pinprick.run import TimeLeft
from pinprick.threads import restored_threads
from pinprick.types import Images


@restored_threads()
def explain_pictures(
    attack: Attack,
    model: str | Classifier,
    source: PictureSource,
    out: Path,
    *,
    run: RunOptions | None = None,
    grouping: str | None = None,
    error: float = 0.05,
    max_pairs: int = 256,
    polish: bool | None = None,
    layer: str | None = None,
    method: str = "auto",
    figures: int | None = None,
    device: str = "auto",
    trust: bool = False,
    progress: Progress | None = None,
) -> ExplainOutcome:
    """Attack pictures and explain the changes; write figures and explanation.json to ``out``.

    An error after the first batch ends the run early; what was found until then is kept.

    Args:
        attack: The attack with its settings.
        model: A model, or the name of one.
        source: The pictures.
        out: The folder; it is made if it is missing.
        run: Seed, batch size, limits and threads; the seed also decides what is sampled.
        grouping: "connected" or "pixels"; None for the one that suits the attack.
        error: Largest standard error of a sampled effect, as a share of the margin change.
        max_pairs: Most pairs of orders that are sampled per group.
        polish: Put back every pixel that is not needed first; None where the attack counts units.
        layer: The layer of the maps by name, "none" for no maps, None for the last fine one.
        method: "auto", "gradcam" or "layercam".
        figures: Draw at most so many images; None for all pictures, and 8 of a dataset at random.
        device: The device for a model given by name.
        trust: Load model files that are programs, too.
        progress: Receives remarks and counts.
    """
    options, progress = run or RunOptions(), progress or Progress()
    settings = make_settings(
        grouping, attack.facts(), seed=options.seed, error=error, max_pairs=max_pairs
    )
    as_method(method)
    open_out(out)
    chosen = choose_data(source)
    classifier = load_on_device(model, device, trust=trust)
    check_scores(classifier)
    groups, total = read_groups(source, chosen, classifier, progress)
    unreadable: list[Unreadable] = []

    time_left = TimeLeft(options.max_seconds)

    def batches(group: PictureGroup) -> Batches:
        yield from attack_group(attack, classifier, group, options, time_left)

    def read() -> Iterator[tuple[Images, Batches]]:
        nonlocal options
        for group in groups:
            unreadable.extend(group.unreadable)
            if group.records:  # there are none where a remote model answered for none of them
                options = settle_threads(options, classifier, group.images, progress)
                yield group.images, batches(group)

    return explain_batches(
        read(),
        classifier,
        out,
        title=f"{attack.card.title} on {classifier.name}",
        facts={
            "unit": attack.facts().unit,
            "data": None if chosen is None else chosen.description,
            "mask": None if source.mask is None else str(source.mask),
            "result": None,
        },
        settings=settings,
        polish=attack.facts().norm == "l0" if polish is None else polish,
        layer=layer,
        method=method,
        drawn=choose_figures(figures, total, dataset=chosen is not None, seed=options.seed),
        total=total,
        totals=chosen is not None,
        unreadable=unreadable,
        progress=progress,
    )
