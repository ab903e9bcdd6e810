"""A result explained in full: polished, with maps, and with the effects of its changed pixels.

Results of attacks that count pixels or elements are polished first, so that no unnecessary pixel is
explained. A dense result is explained as it is, because polishing would change its character.
"""

from dataclasses import dataclass

from torch import nn

from pinprick.attacks import ATTACKS
from pinprick.attacks.build import build
from pinprick.attacks.card import Card
from pinprick.errors import BadInput
from pinprick.explain.class_scores import rivals
from pinprick.explain.maps.class_maps import MapMethod, class_maps
from pinprick.explain.maps.maps import Maps
from pinprick.explain.noise.explain_noise import explain_noise
from pinprick.explain.noise.explanation import Explanation
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.model import Classifier, Model, as_classifier, gives
from pinprick.numerical_noise import confirm, with_noise
from pinprick.polishing import polish
from pinprick.result import AttackResult
from pinprick.types import Images, Labels

POLISH_PASSES = 2000  # forward passes per image; results with few pixels need far fewer

_NOT_SETTINGS = ("polished", "started_from", "limits")  # facts that a result adds to its attack


@dataclass(frozen=True, eq=False, kw_only=True)
class Explained:
    """A result with its explanations and maps, one row per image in each.

    Attributes:
        result: The images that were explained, polished if requested.
        explanations: One explanation per image.
        true_maps: Maps of the clean images for their labels; None without maps, like the next two.
        adversarial_maps: Maps of the adversarial images for ``rivals(result)``.
        control_maps: Maps of the clean images for ``rivals(result)``.
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
    """Polish a result, compute its maps, and measure the effect of each group of changed pixels.

    Args:
        result: The result of an attack.
        model: The model that was attacked.
        settings: How pixels are grouped, evaluated and labelled; the defaults if None.
        polished: Whether to polish by pixels first; None to do so if the attack counts pixels or
            elements.
        maps: Whether to compute maps; None to do so if the model gives access to its layers.
        layer: The layer of the maps, or its name; None for the one that the method finds.
        method: "gradcam" or "layercam"; "auto" is LayerCAM up to 64 pixels per side.
    """
    if not len(result):
        raise BadInput("the result holds no image to explain")
    classifier = as_classifier(model)
    if polished is None:
        facts = facts_of(result)
        polished = facts is None or facts.norm == "l0"
    if polished:
        result = polish(result, classifier, unit="pixels", max_forwards=POLISH_PASSES)
    elif result.noise is None:
        result = with_noise(result, classifier)
    result = confirm(result, classifier)  # explained images must also fool in a batch of one
    if maps is None:
        maps = gives(classifier.access, "network") and isinstance(classifier.net, nn.Module)
    true = adversarial = control = None
    if maps:
        size, led_to = int(result.batch_size.max()), rivals(result)

        def maps_of(images: Images, classes: Labels, layer: str | nn.Module | None) -> Maps:
            return class_maps(
                classifier, images, classes, method=method, layer=layer, batch_size=size
            )

        true = maps_of(result.images, result.goal.labels, layer)
        adversarial = maps_of(result.adversarial, led_to, true.layer)
        control = maps_of(result.images, led_to, true.layer)
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


def title_of(result: AttackResult) -> str:
    """The attack and the model in words, as in "Greedy pixels on resnet18"."""
    facts = facts_of(result)
    attack = result.attack.get("name", "attack") if facts is None else facts.title
    return f"{attack} on {result.model}"


def facts_of(result: AttackResult) -> Card | None:
    """The card of the attack under its settings; None if the attack is unknown here."""
    if result.attack.get("name") not in ATTACKS:
        return None
    settings = {key: value for key, value in result.attack.items() if key not in _NOT_SETTINGS}
    return build(settings).facts()
