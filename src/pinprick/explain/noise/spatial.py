"""Does the change lie where a map shows the evidence? A test against two maps per image.

``H_y`` is a map of the clean image for its true class. ``H_t`` is a map of the adversarial image
for the rival. Each is scaled to sum to one; ``a`` is the share of each pixel in the change.

    lift = P * sum over pixels of a * H        P is the number of pixels; 1 is the value by chance

The null hypothesis shifts the whole change cyclically over the image. A Fourier transform computes
all P shifts, so p has no sampling error. It is the share of shifts, the true one included, with a
lift at least as high.

The top area of a map holds its largest 20 % of values, but no zeros. A group lies in it if more
than half of its change does. Its label is ``obscuring`` (in the area of ``H_y`` only), ``leading``
(of ``H_t`` only), ``overlap`` (both) or ``outside`` (neither).

``H_t`` depends on the change itself, so its lift is inflated. A map of the clean image for the
rival is the control. A map that is zero everywhere is left out.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.explain.maps.maps import PixelMaps, PixelMasks
from pinprick.explain.noise.explanation import MapLabel, MapTest
from pinprick.explain.noise.groups import Groups
from pinprick.types import Mask, PerImage

MAP_LABELS = ("obscuring", "leading", "overlap", "outside", "unknown")
_UNKNOWN = MAP_LABELS.index("unknown")


@dataclass(frozen=True)
class Lift:
    """How much of a weight lies on a map, relative to chance.

    Attributes:
        lift: 1 by chance; NaN if the map is zero or nothing changed.
        p: Share of all shifts with at least this lift; NaN likewise.
    """

    lift: PerImage
    p: PerImage

    def of(self, i: int) -> tuple[float, float]:
        """Lift and p of image ``i``."""
        return float(self.lift[i]), float(self.p[i])


@dataclass(frozen=True)
class Spatial:
    """The spatial test of a batch.

    Attributes:
        true, adversarial: Lifts on the maps ``H_y`` and ``H_t``.
        control: Lift on the clean image's map for the rival; None if not given.
        inside: Lift of the changed pixels, all of equal weight, in the top area of ``H_y``.
        inside_share: Share of changed pixels in this area.
        area: Share of the image in this area, which is the share by chance.
        weight_true, weight_adversarial: Share of each group's change in either top area.
        labels: Indices into ``MAP_LABELS``.
        no_true_map, no_adversarial_map: The map is zero everywhere.
    """

    true: Lift
    adversarial: Lift
    control: Lift | None
    inside: Lift
    inside_share: PerImage
    area: PerImage
    weight_true: Float[Tensor, "batch group"]
    weight_adversarial: Float[Tensor, "batch group"]
    labels: Int[Tensor, "batch group"]
    no_true_map: Mask
    no_adversarial_map: Mask

    def map_test(self, i: int) -> MapTest:
        """The test of image ``i``."""
        true_lift, true_p = self.true.of(i)
        adversarial_lift, adversarial_p = self.adversarial.of(i)
        control_lift = control_p = math.nan
        if self.control is not None:
            control_lift, control_p = self.control.of(i)
        return MapTest(
            true_lift=true_lift,
            true_p=true_p,
            adversarial_lift=adversarial_lift,
            adversarial_p=adversarial_p,
            control_lift=control_lift,
            control_p=control_p,
            inside_share=float(self.inside_share[i]),
            inside_chance=float(self.area[i]),
            inside_p=float(self.inside.p[i]),
            no_true_map=bool(self.no_true_map[i]),
            no_adversarial_map=bool(self.no_adversarial_map[i]),
        )

    def map_label(self, i: int, number: int, effect: str) -> MapLabel:
        """Where a group of image ``i`` lies; ``effect`` is the label of its Shapley value."""
        label = MAP_LABELS[int(self.labels[i, number])]
        agrees = label in (effect, "overlap") and effect in ("obscuring", "leading")
        return MapLabel(
            label=label,
            true_share=float(self.weight_true[i, number]),
            adversarial_share=float(self.weight_adversarial[i, number]),
            strict=effect if agrees else "",
        )


def spatial_test(
    groups: Groups,
    size: PixelMaps,
    true_maps: PixelMaps,
    adversarial_maps: PixelMaps,
    control_maps: PixelMaps | None = None,
    *,
    top: float = 0.2,
) -> Spatial:
    """Compare where the change lies with two maps per image.

    Args:
        groups: The groups of changed pixels.
        size: Size of the change of each pixel.
        true_maps: Maps of the clean images for their true classes, nowhere negative.
        adversarial_maps: Maps of the adversarial images for the rivals.
        control_maps: Maps of the clean images for the rivals.
        top: Share of the pixels in the top area.
    """
    changed = (groups.index >= 0).double()
    true_area, adversarial_area = top_area(true_maps, top), top_area(adversarial_maps, top)
    shares = [
        groups.total(size.double() * area) / groups.total(size.double())
        for area in (true_area, adversarial_area)
    ]
    in_true, in_adversarial = (share > 0.5 for share in shares)
    labels = torch.full_like(in_true, MAP_LABELS.index("outside"), dtype=torch.long)
    labels = labels.masked_fill(in_true, MAP_LABELS.index("obscuring"))
    labels = labels.masked_fill(in_adversarial, MAP_LABELS.index("leading"))
    labels = labels.masked_fill(in_true & in_adversarial, MAP_LABELS.index("overlap"))
    no_true, no_adversarial = (_zero(maps) for maps in (true_maps, adversarial_maps))
    labels = labels.masked_fill((no_true | no_adversarial).unsqueeze(1), _UNKNOWN)
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
        labels=labels,
        no_true_map=no_true,
        no_adversarial_map=no_adversarial,
    )


def top_area(maps: PixelMaps, top: float) -> PixelMasks:
    """The share ``top`` of the pixels with the largest values; ties are all included."""
    flat = maps.flatten(1)
    least = flat.topk(math.ceil(top * flat.shape[1]), dim=1).values[:, -1:]
    return ((flat >= least) & (flat > 0)).view_as(maps)


def lift_on(weight: PixelMaps, maps: PixelMaps) -> Lift:
    """The lift of ``weight`` on ``maps``, and the share of shifts that reach it."""
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
