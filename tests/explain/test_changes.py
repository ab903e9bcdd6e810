"""What was explained can be rebuilt from the clean image, bit for bit."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pinprick import AttackResult, BadInput, Classifier, Explanation, NoiseSettings, run_attack
from pinprick.attacks import IFGSM, Greedy
from pinprick.explain.noise.changes import load_changes, rebuild, save_changes, without_pixels
from pinprick.explain.noise.explain_noise import explain_noise


@pytest.fixture(params=[Greedy(), IFGSM(eps=0.07, step_size=None)], ids=["sparse", "dense"])
def result(request: pytest.FixtureRequest, linear: Classifier, images: Tensor) -> AttackResult:
    pictures = images.float() * 0.7 + 0.1  # no value of these is on the 8-bit grid
    with torch.no_grad():
        labels = linear(pictures.double()).argmax(dim=1)
    model = Classifier(lambda x: linear(x.double()).float())
    return run_attack(request.param, model, pictures, labels)


@pytest.fixture
def explained(linear: Classifier, result: AttackResult) -> tuple[Explanation, ...]:
    model = Classifier(lambda x: linear(x.double()).float())
    return explain_noise(result, model, NoiseSettings(path_steps=0))


def test_the_adversarial_image_comes_back_from_json(
    result: AttackResult, explained: tuple[Explanation, ...]
) -> None:
    assert result.success.any()
    for clean, adversarial, one in zip(result.images, result.adversarial, explained, strict=True):
        text = json.dumps(one.to_dict(), allow_nan=False)
        again = Explanation.from_dict(json.loads(text))
        assert torch.equal(rebuild(again, clean), adversarial)


def test_lists_that_are_dropped_come_back_from_their_file(
    result: AttackResult, explained: tuple[Explanation, ...], tmp_path: Path
) -> None:
    number = int(result.success.nonzero()[0])
    whole, path = explained[number], tmp_path / "changes.safetensors"
    save_changes(whole, path)
    light = without_pixels(whole)
    assert [group.pixels for group in light.groups] == [()] * len(whole.groups)
    assert light.groups[0].shapley == whole.groups[0].shapley
    assert light.changed_pixels == whole.changed_pixels > 0
    with pytest.raises(BadInput, match=r"lists 0 of \d+ changed pixels; load .* load_changes"):
        rebuild(light, result.images[number])
    again = load_changes(light, path)
    assert again == whole
    assert torch.equal(rebuild(again, result.images[number]), result.adversarial[number])


def test_another_image_is_refused(result: AttackResult, explained: tuple[Explanation, ...]) -> None:
    number = int(result.success.nonzero()[0])
    one, clean = explained[number], result.images[number]
    with pytest.raises(BadInput, match="pass the image as the model got it"):
        rebuild(one, clean + 0.001)
    with pytest.raises(BadInput, match="is not the one that was explained"):
        rebuild(one, clean[:, :1, :1])


def test_a_file_of_something_else_is_refused(
    explained: tuple[Explanation, ...], tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("nothing")
    with pytest.raises(BadInput, match="holds no changed pixels"):
        load_changes(explained[0], tmp_path / "text")
    save_changes(explained[0], tmp_path / "other")
    with pytest.raises(BadInput, match="changed pixels, the explanation has 1"):
        load_changes(replace(explained[0], changed_pixels=1000), tmp_path / "other")
