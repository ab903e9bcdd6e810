"""Models made of other models: behind 8-bit images, and several as one."""

from pathlib import Path

import pytest
import torch

from pinprick import BadInput, Classifier, ModelCard, save_model
from pinprick.bench.cache import Cache
from pinprick.zoo import load_model
from pinprick.zoo.combined import load_ensemble, load_rounded
from pinprick.zoo.nets import build_net

IMAGES = torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    names = []
    for seed in range(2):
        torch.manual_seed(seed)
        card = ModelCard(
            net="resnet20", classes=("a", "b"), mean=(0.5,) * 3, std=(0.2,) * 3, size=(16, 16)
        )
        save_model(build_net("resnet20", classes=2), card, tmp_path / str(seed))
        names.append(f"file:{tmp_path / str(seed)}")
    return names


def test_a_rounded_model_sees_images_as_a_png_holds_them(folders: list[str]) -> None:
    model, rounded = load_model(folders[0]), load_model(f"rounded:{folders[0]}")
    eight_bit = (IMAGES * 255).round() / 255
    with torch.no_grad():
        assert torch.equal(rounded(IMAGES), model(eight_bit))
        assert not torch.equal(rounded(IMAGES), model(IMAGES))
    assert (rounded.access, rounded.size, rounded.classes) == ("scores", (16, 16), ("a", "b"))


def test_a_rounded_model_gives_no_more_than_the_model_behind_it(folders: list[str]) -> None:
    labels = Classifier(load_model(folders[0]).net, access="labels")
    assert load_rounded("rounded", labels).access == "labels"


def test_an_ensemble_has_the_mean_of_the_logits(folders: list[str]) -> None:
    both = load_model(f"ensemble:{'+'.join(folders)}")
    with torch.no_grad():
        logits = [load_model(name)(IMAGES) for name in folders]
        assert torch.allclose(both(IMAGES), (logits[0] + logits[1]) / 2)
    assert both.access == "gradients"
    images = IMAGES.clone().requires_grad_()
    both(images).sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0


def test_a_benchmark_tells_combined_models_by_the_weights_of_all(folders: list[str]) -> None:
    names = [f"rounded:{one}" for one in folders]
    names += [f"ensemble:{'+'.join(some)}" for some in (folders, folders[::-1])]
    assert len({Cache().weights(name) for name in names}) == len(names)


def test_frozen_reaches_the_networks_inside(folders: list[str]) -> None:
    both = load_model(f"ensemble:{'+'.join(folders)}")
    assert isinstance(both.net, torch.nn.Module)
    with both.frozen():
        assert not any(one.requires_grad for one in both.net.parameters())
    assert all(one.requires_grad for one in both.net.parameters())


def test_models_that_do_not_fit_together_are_refused(folders: list[str]) -> None:
    model = load_model(folders[0])
    small = Classifier(model.net, classes=("a", "b"), size=(8, 8), name="small")
    with pytest.raises(BadInput, match="small has other classes or another image size"):
        load_ensemble("both", [model, small])
    with pytest.raises(BadInput, match="gives no gradients"):
        load_ensemble("both", [model, load_rounded("rounded", model)])
    with pytest.raises(BadInput, match="has one model"):
        load_model(f"ensemble:{folders[0]}")
