"""Does the change lie where a map says the evidence is? A test against two maps of each image.

``H_y`` is a map of the clean image for its true class and ``H_t`` one of the adversarial image for
the class it is led to, each scaled to add up to one; ``a`` is each pixel's share of the change.

    lift = P * sum over pixels of a * H        P pixels in all; 1 is what chance would give

The null moves the change round the image as a whole, and out on one side means in on the other.
All P shifts are taken, by a Fourier transform, so that nothing is drawn and p has no error of its
own; p is the share of shifts with a lift at least as high, the true place among them.

A group lies in the top area of a map (the pixels that hold its largest 20 % of values, zeros never
among them) if most of its change does. Such places are ``obscuring`` (in that of ``H_y`` alone),
``leading`` (``H_t`` alone), ``overlap`` (both) or ``outside`` (neither).

``H_t`` is itself a product of the change, so its lift is inflated; a map of the clean image for
the same class is the control. A map that is zero everywhere says nothing and is left out.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.explain.maps.maps import PixelMaps, PixelMasks
from pinprick.explain.noise.groups import Groups
from pinprick.types import Mask, PerImage

PLACES = ("obscuring", "leading", "overlap", "outside", "unknown")
_UNKNOWN = PLACES.index("unknown")


@dataclass(frozen=True)
class Lift:
    """How much more of a weight lies on a map than chance would put there.

    Attributes:
        lift: 1 is chance; NaN where the map is zero or nothing changed.
        p: Share of all shifts that give as much or more; NaN likewise.
    """

    lift: PerImage
    p: PerImage


@dataclass(frozen=True)
class Spatial:
    """The spatial test of a batch.

    Attributes:
        true, adversarial: Lifts on the map of the true and of the adversarial class.
        control: Lift on the clean image's map for the adversarial class; None if not given.
        inside: How many times more changed pixels lie in the top area of the true class's map
            than chance would put there; every pixel counts the same.
        inside_share: The share of changed pixels that lie there.
        area: Share of the image that this area takes up, which is what chance would give.
        weight_true, weight_adversarial: Share of each group's change in either top area.
        places: Numbers into ``PLACES``.
        no_true_map, no_adversarial_map: Where the map was zero everywhere.
    """

    true: Lift
    adversarial: Lift
    control: Lift | None
    inside: Lift
    inside_share: PerImage
    area: PerImage
    weight_true: Float[Tensor, "batch group"]
    weight_adversarial: Float[Tensor, "batch group"]
    places: Int[Tensor, "batch group"]
    no_true_map: Mask
    no_adversarial_map: Mask


def spatial_test(
    groups: Groups,
    size: PixelMaps,
    true_maps: PixelMaps,
    adversarial_maps: PixelMaps,
    control_maps: PixelMaps | None = None,
    *,
    top: float = 0.2,
) -> Spatial:
    """Hold where the change lies against two maps of each image.

    Args:
        groups: Of changed pixels.
        size: How large the change of each pixel is.
        true_maps: Of the clean images for their true classes, nowhere negative.
        adversarial_maps: Of the adversarial images for the classes they are led to.
        control_maps: Of the clean images for those classes.
        top: How much of an image its top area is.
    """
    changed = (groups.index >= 0).double()
    true_area, adversarial_area = top_area(true_maps, top), top_area(adversarial_maps, top)
    shares = [
        groups.total(size.double() * area) / groups.total(size.double())
        for area in (true_area, adversarial_area)
    ]
    in_true, in_adversarial = (share > 0.5 for share in shares)
    places = torch.full_like(in_true, PLACES.index("outside"), dtype=torch.long)
    places = places.masked_fill(in_true, PLACES.index("obscuring"))
    places = places.masked_fill(in_adversarial, PLACES.index("leading"))
    places = places.masked_fill(in_true & in_adversarial, PLACES.index("overlap"))
    no_true, no_adversarial = (_zero(maps) for maps in (true_maps, adversarial_maps))
    places = places.masked_fill((no_true | no_adversarial).unsqueeze(1), _UNKNOWN)
    inside = (changed * true_area).flatten(1).sum(dim=1) / changed.flatten(1).sum(dim=1)
    return Spatial(
        true=lift_on(size, true_maps),
        adversarial=lift_on(size, adversarial_maps),
        control=None if control_maps is None else lift_on(size, control_maps),
        inside=lift_on(changed, true_area.double()),
        inside_share=inside.masked_fill(no_true, torch.nan),
        area=true_area.double().flatten(1).mean(dim=1).masked_fill(no_true, torch.nan),
        weight_true=shares[0],
        weight_adversarial=shares[1],
        places=places,
        no_true_map=no_true,
        no_adversarial_map=no_adversarial,
    )


def top_area(maps: PixelMaps, top: float) -> PixelMasks:
    """The pixels with the largest values, ``top`` of all; equal ones are in together."""
    flat = maps.flatten(1)
    least = flat.topk(math.ceil(top * flat.shape[1]), dim=1).values[:, -1:]
    return ((flat >= least) & (flat > 0)).view_as(maps)


def lift_on(weight: PixelMaps, maps: PixelMaps) -> Lift:
    """The lift of ``weight`` on ``maps``, and how many of all shifts reach it."""
    weight, maps = (values.double() for values in (weight, maps))
    known = ~(_zero(weight) | _zero(maps))
    weight, maps = (
        values / values.flatten(1).sum(dim=1).view(-1, 1, 1) for values in (weight, maps)
    )
    spectrum = torch.fft.rfft2(maps) * torch.fft.rfft2(weight).conj()
    pixels = maps[0].numel() if len(maps) else 0
    lifts = pixels * torch.fft.irfft2(spectrum, s=maps.shape[1:]).flatten(1)
    lift = pixels * (weight * maps).flatten(1).sum(dim=1)
    reach = lifts >= (lift - 1e-9 * (1 + lift.abs())).unsqueeze(1)  # the transform's rounding
    p = reach.double().mean(dim=1)
    return Lift(lift.masked_fill(~known, torch.nan), p.masked_fill(~known, torch.nan))


def _zero(maps: PixelMaps) -> Mask:
    return (maps == 0).flatten(1).all(dim=1)
