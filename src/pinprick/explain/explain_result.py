"""A result explained from beginning to end: shortened, looked at through maps, taken apart.

Attacks that count pixels or elements are polished first, so that no changed pixel is explained
which need not be there. A dense attack is explained as it is: shortened, it would be another one.
"""

from dataclasses import dataclass

from torch import nn

from pinprick.attacks import ATTACKS
from pinprick.attacks.build import build
from pinprick.errors import BadInput
from pinprick.explain.maps.class_maps import MapMethod, class_maps
from pinprick.explain.maps.maps import Maps
from pinprick.explain.noise.explain_noise import explain_noise
from pinprick.explain.noise.explanation import Explanation
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.explain.path import rivals
from pinprick.model import Classifier, Model, as_classifier, gives
from pinprick.numerical_noise import confirm, with_noise
from pinprick.polishing import polish
from pinprick.result import AttackResult
from pinprick.types import Images, Labels

POLISH_PASSES = 2000  # forward passes an image, which few pixels never need

_ADDED = ("polished", "started_from", "limits")  # what a result says of its attack, not settings


@dataclass(frozen=True, eq=False, kw_only=True)
class Explained:
    """A result with everything that was found out about it, one row an image in all of it.

    Attributes:
        result: The images that were explained, polished if so wanted.
        explanations: What was found.
        true_maps: Maps of the clean images for their labels; None without maps, like the next two.
        adversarial_maps: Maps of the adversarial images for the classes they are led to.
        control_maps: Maps of the clean images for the same classes.
    """

    result: AttackResult
    explanations: tuple[Explanation, ...]
    true_maps: Maps | None
    adversarial_maps: Maps | None
    control_maps: Maps | None

    def __len__(self) -> int:
        return len(self.result)


def explain_result(
    result: AttackResult,
    model: Classifier | Model,
    settings: NoiseSettings | None = None,
    *,
    polished: bool | None = None,
    maps: bool | None = None,
    layer: str | nn.Module | None = None,
    method: MapMethod = "auto",
) -> Explained:
    """Polish a result, take its maps, and explain what each group of changed pixels does.

    Args:
        result: What an attack gave.
        model: The model that was attacked.
        settings: How pixels are grouped, asked about and labelled; the defaults if None.
        polished: Whether to polish it first, by pixels; None to do so where the attack counts
            pixels or elements.
        maps: Whether to take maps; None to do so where the model shows its layers.
        layer: The layer of the maps, or its name; None for the one that the method finds.
        method: "gradcam" or "layercam"; "auto" is LayerCAM up to 64 pixels per side.
    """
    if not len(result):
        raise BadInput("there is no image to explain")
    classifier = as_classifier(model)
    if polished is None:
        polished = _counts(result)
    if polished:
        result = polish(result, classifier, unit="pixels", max_forwards=POLISH_PASSES)
    elif result.noise is None:
        result = with_noise(result, classifier)
    result = confirm(result, classifier)  # what is explained fools alone, too
    if maps is None:
        maps = gives(classifier.access, "network") and isinstance(classifier.net, nn.Module)
    true = adversarial = control = None
    if maps:
        size, led_to = int(result.batch_size.max()), rivals(result)

        def look(images: Images, classes: Labels, layer: str | nn.Module | None) -> Maps:
            return class_maps(
                classifier, images, classes, method=method, layer=layer, batch_size=size
            )

        true = look(result.images, result.goal.labels, layer)
        adversarial = look(result.adversarial, led_to, true.layer)
        control = look(result.images, led_to, true.layer)
    explanations = explain_noise(
        result,
        classifier,
        settings,
        true_maps=None if true is None else true.values,
        adversarial_maps=None if adversarial is None else adversarial.values,
        control_maps=None if control is None else control.values,
    )
    return Explained(
        result=result,
        explanations=explanations,
        true_maps=true,
        adversarial_maps=adversarial,
        control_maps=control,
    )


def _counts(result: AttackResult) -> bool:
    """Whether the attack keeps the number of changes small; one that is not known is taken so."""
    if result.attack.get("name") not in ATTACKS:
        return True
    settings = {key: value for key, value in result.attack.items() if key not in _ADDED}
    return build(settings).facts().norm == "l0"
