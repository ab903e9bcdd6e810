"""EGS-TSSA: the generator, the block mask, the refusals, and one pass through all of it."""

import json
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinprick import BadInput, Classifier, UnknownName, build, load_model, run_attack
from pinprick.attacks.egs_tssa import EGSTSSA
from pinprick.attacks.egs_tssa.attack import perturb
from pinprick.attacks.egs_tssa.block_mask import block_mask, blocks_kept, mask_blocks
from pinprick.attacks.egs_tssa.generator import Generator
from pinprick.attacks.egs_tssa.saved_generator import (
    CARD,
    WEIGHTS,
    GeneratorCard,
    load_generator,
    read_generator_card,
    save_generator,
)
from pinprick.attacks.greedy import Greedy
from pinprick.contract.ground import smooth_images
from pinprick.result import AttackResult

SHAPE = (2, 12, 13)


class Tiny(nn.Module):
    """Two convolutions and a linear layer, for images of ``SHAPE``."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.features = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU())
            self.fc = nn.Linear(4 * 12 * 13, 3)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.features(images).flatten(1))
        return logits


def card_for(model: Classifier, **changes: Any) -> GeneratorCard:
    card = GeneratorCard(
        model=model.name,
        network=model.digest,
        layer="features",
        channels=SHAPE[0],
        height=SHAPE[1],
        width=SHAPE[2],
        target=None,
        eps=0.5,
        base=4,
        residual_blocks=1,
        block=3,
        keep=0.5,
    )
    return replace(card, **changes)


def untrained(card: GeneratorCard, folder: Path) -> str:
    """The name of a folder with a generator whose mask has about half of the pixels."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        generator = card.build().eval()
        last = generator.mask[-1]
        assert isinstance(last, nn.Conv2d)
        assert last.bias is not None
        nn.init.normal_(generator.values[-1].weight)  # type: ignore[arg-type]
        nn.init.normal_(last.weight)
        nn.init.zeros_(last.bias)
        hidden = generator.encoder(smooth_images(8, SHAPE))
        with torch.no_grad():
            last.bias -= generator.mask(hidden).median()
    folder.mkdir(exist_ok=True)
    save_generator(generator, card, folder)
    return str(folder)


@pytest.fixture
def model() -> Classifier:
    return Classifier(Tiny(), name="tiny")


@pytest.fixture
def images() -> Tensor:
    return smooth_images(5, SHAPE)


def predicted(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


def run(attack: EGSTSSA, model: Classifier, images: Tensor, **options: Any) -> AttackResult:
    return run_attack(attack, model, images, predicted(model, images), **options)


# The generator


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(28, 28), (32, 32), (96, 96), (224, 224), (29, 35), (5, 6)])
def test_values_lie_in_the_ball_and_mask_values_in_the_unit_interval(
    channels: int, size: tuple[int, int]
) -> None:
    generator = Generator(channels, 2, 1, 0.3).eval()
    images = torch.rand(2, channels, *size)
    values, mask = generator(images)
    assert values.shape == images.shape
    assert mask.shape == (2, 1, *size)
    assert values.abs().max() <= 0.3
    assert 0 <= mask.min() <= mask.max() <= 1


@pytest.mark.parametrize("size", [(16, 16), (15, 17), (13, 18)])
def test_an_output_belongs_to_the_pixel_at_its_own_place(size: tuple[int, int]) -> None:
    """With kernels of a single one in the middle, every fourth pixel passes through unchanged."""
    generator = Generator(1, 1, 0, 1.0).eval()
    for module in generator.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.zeros_(module.weight)
            with torch.no_grad():
                module.weight[0, 0, module.kernel_size[0] // 2, module.kernel_size[1] // 2] = 1
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    images = torch.rand(1, 1, *size)
    values, _ = generator(images)
    assert torch.allclose(values[..., ::4, ::4], images[..., ::4, ::4].tanh(), atol=1e-4)


# The block mask


def test_the_blocks_of_the_largest_energy_are_kept_as_brute_force_finds_them() -> None:
    energy = torch.rand(4, 1, 2, 3, generator=torch.Generator().manual_seed(0))
    for count in range(1, 7):
        kept = mask_blocks(energy, count / 6)
        for one, mask in zip(energy, kept, strict=True):
            flat = one.flatten()
            best = max(combinations(range(6), count), key=lambda some: flat[list(some)].sum())
            assert mask.flatten().nonzero().flatten().tolist() == list(best)


@pytest.mark.parametrize(
    ("blocks", "keep", "count"), [(64, 0.6, 38), (784, 0.873, 684), (4, 0.1, 1)]
)
def test_a_share_of_the_blocks_is_rounded_down_and_one_at_least(
    blocks: int, keep: float, count: int
) -> None:
    assert blocks_kept(blocks, keep) == count


def test_the_block_mask_follows_its_definition_image_by_image() -> None:
    generator = torch.Generator().manual_seed(2)
    features = torch.randn(3, 5, 4, 4, generator=generator)
    gradient = torch.randn(3, 5, 4, 4, generator=generator)
    mask = block_mask(features, gradient, (17, 19), 4, 0.4)
    for row in range(3):
        weight = gradient[row].mean(dim=(1, 2))
        plane = sum(w * a for w, a in zip(weight, features[row], strict=True))
        assert isinstance(plane, Tensor)
        large = F.interpolate(plane[None, None], (17, 19), mode="bilinear", antialias=True)[0, 0]
        norms = {
            (i, j): large[4 * i : 4 * i + 4, 4 * j : 4 * j + 4].norm().item()
            for i in range(4)
            for j in range(4)
        }
        wanted = torch.zeros(17, 19, dtype=torch.bool)
        for i, j in sorted(norms, key=lambda at: -norms[at])[:6]:
            wanted[4 * i : 4 * i + 4, 4 * j : 4 * j + 4] = True
        assert torch.equal(mask[row, 0], wanted)


def test_strongly_negative_regions_are_kept_too() -> None:
    features = torch.zeros(1, 1, 2, 2)
    features[0, 0, 0, 0], features[0, 0, 1, 1] = -5, 1
    mask = block_mask(features, torch.ones_like(features), (2, 2), 1, 0.25)
    assert mask[0, 0].tolist() == [[True, False], [False, False]]


# The attack


def test_one_pass_changes_pixels_of_the_mask_in_kept_blocks_by_eps_at_most(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    card = card_for(model)
    attack = EGSTSSA(weights=untrained(card, tmp_path / "made"))
    result = run(attack, model, images)
    _, generator = load_generator(attack.weights, attack.sha256)
    features = model.net.features(images).detach().requires_grad_()  # type: ignore[attr-defined]
    grad = torch.autograd.grad(model.net.fc(features.flatten(1)).sum(), features)[0]  # type: ignore[attr-defined]
    blocks = block_mask(features.detach(), grad, SHAPE[1:], card.block, card.keep)
    values, rho = generator.double()(images.double())
    changed = (result.adversarial != images).any(dim=1, keepdim=True)
    assert changed.any()
    assert not (changed & ~((rho >= 0.5) & blocks)).any()
    wanted = torch.where((rho >= 0.5) & blocks, (images + values).clamp(0, 1), images)
    assert torch.allclose(result.adversarial.double(), wanted, atol=0.51 / 255)
    assert result.linf.max() <= 0.5 + 1e-6


def test_the_passes_of_model_and_generator_are_counted_apart(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    result = run(EGSTSSA(weights=untrained(card_for(model), tmp_path)), model, images)
    assert result.forwards.tolist() == result.backwards.tolist() == [1] * 5
    assert result.generator_forwards is not None
    assert result.generator_forwards.tolist() == [1] * 5
    assert run_attack(Greedy(), model, images, predicted(model, images)).generator_forwards is None


def test_without_a_block_mask_the_model_is_not_asked(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    attack = EGSTSSA(weights=untrained(card_for(model, keep=1.0), tmp_path))
    result = run(attack, model, images)
    assert not result.forwards.any()
    assert not result.backwards.any()
    assert attack.facts().max_forwards == 0
    _, generator = load_generator(attack.weights, attack.sha256)
    everywhere = torch.ones_like(images[:, :1], dtype=torch.bool)
    assert torch.equal(result.adversarial, perturb(generator, images, everywhere))


def test_k_keeps_the_pixels_of_the_largest_change(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    weights = untrained(card_for(model), tmp_path)
    whole = run(EGSTSSA(weights=weights), model, images)
    few = run(EGSTSSA(weights=weights, k=4), model, images)
    assert few.l0_pixels.tolist() == [4] * 5
    size = (whole.adversarial - images).abs().sum(dim=1).flatten(1)
    kept = (few.adversarial != images).any(dim=1).flatten(1)
    for one, chosen in zip(size, kept, strict=True):
        assert one[chosen].min() >= one[~chosen].max()


def test_an_8_bit_image_stays_one(model: Classifier, images: Tensor, tmp_path: Path) -> None:
    images = (images * 255).round() / 255
    result = run(EGSTSSA(weights=untrained(card_for(model), tmp_path)), model, images)
    levels = result.adversarial * 255
    assert result.l0_pixels.min() > 0
    assert torch.allclose(levels, levels.round(), atol=1e-4)


def test_an_image_that_is_refused_its_pass_stays_clean(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    attack = EGSTSSA(weights=untrained(card_for(model), tmp_path))
    for limit in ({"max_forwards": 0}, {"max_backwards": 0}):
        result = run(attack, model, images, **limit)
        assert torch.equal(result.adversarial, images)
        assert not result.success.any()


def test_an_image_has_the_same_result_in_any_batch(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    attack = EGSTSSA(weights=untrained(card_for(model), tmp_path))
    together = run(attack, model, images)
    alone = run(attack, model, images, batch_size=1)
    assert torch.equal(together.adversarial, alone.adversarial)


def test_the_fallback_takes_the_images_that_are_left_and_its_passes_count(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    weights = untrained(card_for(model, eps=0.05), tmp_path)
    once = run(EGSTSSA(weights=weights), model, images)
    attack = EGSTSSA(weights=weights, fallback=Greedy(max_pixels=100))
    both = run(attack, model, images)
    assert not once.success.all()
    assert both.success.all()
    left = ~once.success
    assert torch.equal(both.adversarial[~left], once.adversarial[~left])
    assert (both.forwards[~left] == 2).all()
    assert (both.forwards[left] > 2).all()
    assert [*both.stages] == ["block mask", "generator", "fallback"]
    assert both.stages["fallback"].forwards[~left].tolist() == [0] * int((~left).sum())
    assert [name == "generator" for name in both.found_by] == (~left).tolist()
    most = attack.facts().max_forwards
    assert most is not None
    assert both.forwards.max() <= most


# Refusals


def test_another_network_another_size_and_another_target_are_refused(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    attack = EGSTSSA(weights=untrained(card_for(model), tmp_path / "one"))
    labels = predicted(model, images)
    other = Classifier(Tiny(seed=1), name="other")
    with pytest.raises(BadInput, match="egs_tssa with these weights attacks tiny, and other is an"):
        run_attack(attack, other, images, labels)
    with pytest.raises(BadInput, match="takes images of 2 x 12 x 13, got 2 x 12 x 12"):
        run_attack(attack, model, images[..., :12], labels)
    with pytest.raises(BadInput, match=r"with these weights has no targeted form; .* train a"):
        run_attack(attack, model, images, labels, targets=(labels + 1) % 3)
    aimed = EGSTSSA(weights=untrained(card_for(model, target=0), tmp_path / "two"))
    for targets in (None, torch.where(labels == 1, 2, 1)):
        with pytest.raises(BadInput, match="aims at class 0 alone"):
            run_attack(aimed, model, images, labels, targets=targets)


def test_success_of_a_targeted_generator_is_reaching_the_target(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    target = 0
    attack = EGSTSSA(weights=untrained(card_for(model, target=target, eps=1.0), tmp_path))
    labels = predicted(model, images)
    rows = labels != target
    assert rows.any()
    aim = torch.full_like(labels[rows], target)
    result = run_attack(attack, model, images[rows], labels[rows], targets=aim)
    reached = predicted(model, result.adversarial) == target
    assert torch.equal(result.success, reached)


def test_settings_hold_the_digest_of_the_weights(model: Classifier, tmp_path: Path) -> None:
    attack = EGSTSSA(weights=untrained(card_for(model), tmp_path))
    assert attack.sha256 == read_generator_card(tmp_path)[1] != ""
    assert build(attack.describe()) == attack


def test_weights_other_than_the_settings_name_are_refused(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    attack = EGSTSSA(weights=untrained(card_for(model), tmp_path))
    save_generator(card_for(model).build(), card_for(model), tmp_path)
    with pytest.raises(BadInput, match="is not the file that these settings name: its SHA-256 is"):
        run(attack, model, images)


def test_weights_that_were_damaged_are_refused(
    model: Classifier, images: Tensor, tmp_path: Path
) -> None:
    attack = EGSTSSA(weights=untrained(card_for(model), tmp_path))
    content = bytearray((tmp_path / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (tmp_path / WEIGHTS).write_bytes(content)
    with pytest.raises(BadInput, match="is not the file that its card lists"):
        run(attack, model, images)


def test_weights_of_another_size_do_not_fit_the_card(model: Classifier, tmp_path: Path) -> None:
    folder = Path(untrained(card_for(model), tmp_path))
    held = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps({**held, "base": 8}))
    with pytest.raises(BadInput, match="does not fit its card"):
        load_generator(str(folder), held["sha256"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attack": "tsaa"}, "is no card of a generator of egs_tssa"),
        ({"keep": 2}, "keep in .* cannot be 2"),
        ({"base": "four"}, "base in .* cannot be"),
        ({"residual_blocks": -1}, "residual_blocks in .* cannot be -1"),
        ({"facts": []}, "facts in .* cannot be"),
        ({"sha256": 3}, "lacks sha256"),
    ],
)
def test_a_card_with_a_wrong_entry_is_refused(
    model: Classifier, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    untrained(card_for(model), tmp_path)
    held = json.loads((tmp_path / CARD).read_text())
    (tmp_path / CARD).write_text(json.dumps({**held, **changes}))
    with pytest.raises(BadInput, match=message):
        EGSTSSA(weights=str(tmp_path))


def test_a_card_goes_there_and_back(model: Classifier, tmp_path: Path) -> None:
    card = card_for(model, facts={"seconds": 1.5})
    untrained(card, tmp_path)
    assert asdict(read_generator_card(tmp_path)[0]) == asdict(card)


def test_unknown_names_and_folders_without_a_generator_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="cifar10_resnet20"):
        EGSTSSA(weights="cifar10_resnet21")
    with pytest.raises(BadInput, match="holds no generator"):
        EGSTSSA(weights=str(tmp_path))


# The generator that comes with the package


def test_the_shipped_generator_is_small_and_for_the_shipped_model() -> None:
    attack = EGSTSSA()
    inputs = attack.facts().inputs
    assert inputs is not None
    assert (inputs.model, inputs.shape, inputs.target) == (
        "pinprick:cifar10_resnet20",
        (3, 32, 32),
        None,
    )
    assert inputs.network == load_model(inputs.model).digest
    card, _ = load_generator(attack.weights, attack.sha256)
    assert card.facts["in_a_tenth_of_the_pixels"]["fooling_rate"] >= 0.6
    folder = Path(__file__).parents[2] / "src/pinprick/attacks/egs_tssa/weights" / attack.weights
    assert (folder / WEIGHTS).stat().st_size < 1_000_000
