"""The sanity check of Adebayo et al. 2018: which maps notice that upper weights are shuffled?"""

import copy

import torch
from scipy.stats import spearmanr
from torch import Tensor, nn

from pinprick import Classifier, load_data, load_model
from pinprick.explain.maps.class_maps import gradcam
from pinprick.explain.maps.guided import guided_gradients


def shuffled(model: Classifier) -> Classifier:
    """The model with the weights of its linear layers in another order."""
    other = copy.deepcopy(model)
    assert isinstance(other.net, nn.Module)
    rng = torch.Generator().manual_seed(0)
    for module in other.net.modules():
        if isinstance(module, nn.Linear):
            order = torch.randperm(module.weight.numel(), generator=rng)
            module.weight.data = module.weight.data.flatten()[order].view_as(module.weight)
    return other


def likeness(first: Tensor, second: Tensor) -> float:
    """The median over images of the rank correlation of two maps."""
    pairs = zip(first.flatten(1).tolist(), second.flatten(1).tolist(), strict=True)
    return torch.tensor([spearmanr(one, other).statistic for one, other in pairs]).median().item()


def test_gradcam_notices_shuffled_weights_and_guided_gradients_hardly_do() -> None:
    model, data = load_model("pinprick:fashion_cnn"), load_data("fashion_sample")
    images, labels = data.images(), data.labels
    other = shuffled(model)
    maps, blind = gradcam(model, images, labels), gradcam(other, images, labels)
    informative = ~(maps.empty | blind.empty)
    assert informative.sum() > 32
    seen = likeness(maps.coarse[informative], blind.coarse[informative])
    guided, guided_blind = (guided_gradients(m, images, labels).values for m in (model, other))
    edges = likeness(guided.abs(), guided_blind.abs())
    assert abs(seen) < 0.25
    assert edges > seen + 0.3
