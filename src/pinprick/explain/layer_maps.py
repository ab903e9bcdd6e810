"""Maps taken from a layer: the passes and the enlarging that Grad-CAM and LayerCAM share."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinprick.explain.layers import pick_layer
from pinprick.explain.maps import Maps
from pinprick.explain.question import Question
from pinprick.explain.watch import watch


@torch.inference_mode(False)  # gradients are needed, in whatever mode the caller is
def layer_maps(
    question: Question,
    layer: str | nn.Module | None,
    weigh: Callable[[Tensor, Tensor], Tensor],
    *,
    at_least: int,
    method: str,
) -> Maps:
    """What ``weigh`` makes of a layer's planes and their gradients; not finite counts as zero."""
    home, size = question.images.device, question.images.shape[2:]
    name, module = pick_layer(question, layer, at_least=at_least)
    maps, classes = [], []
    for images, wanted in question.batches():
        planes, slopes, chosen = watch(question.model, module, name, images, wanted)
        maps.append(weigh(planes, slopes).nan_to_num(0.0, 0.0, 0.0).to(home))
        classes.append(chosen.to(home))
    coarse = torch.cat(maps)
    fine = F.interpolate(coarse.unsqueeze(1), size=size, mode="bilinear", align_corners=False)
    return Maps(
        values=fine.squeeze(1), coarse=coarse, classes=torch.cat(classes), layer=name, method=method
    )
