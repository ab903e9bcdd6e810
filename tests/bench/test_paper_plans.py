"""The plans of the paper's tables, and the networks and variants of attacks that they name."""

import hashlib
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier, Goal, run_attack
from pinprick.attacks.build import build, describe
from pinprick.attacks.card import Attack
from pinprick.bench.plan import Plan
from pinprick.bench.plan_file import read_plan
from pinprick.bench.store import Store
from pinprick.errors import BadInput
from pinprick.own_code import import_own

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "plans" / "paper"
NEED_GENERATORS = {"egs_tssa"}
TABLES = [f"table{number}" for number in range(1, 5)]
COMPARED = {"cw_l0", "onepixel", "sparsefool", "greedyfool", "fmn"}
COMPARED |= {"homotopy", "sparse_rs", "sa_moo", "brusle"}  # and egs_tssa, in its own plan
OURS = {"ifgsm", "wifgsm_printed", "wifgsm", "sigma_zero", "pinprick"}


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # plans name files from the root of the repository


def plan(name: str) -> Plan:
    return read_plan(FOLDER / f"{name}.toml")


def variants() -> Any:
    return import_own("plans/paper/variants.py", "an attack")


@pytest.mark.parametrize(
    "name", sorted({path.stem for path in FOLDER.glob("*.toml")} - NEED_GENERATORS)
)
def test_a_plan_can_be_read_and_says_how_it_is_run(name: str) -> None:
    read = plan(name)
    assert f"pinprick bench run plans/paper/{name}.toml --store results/" in read.text
    assert all(one.device == "cuda" for one in read.products)


def test_generators_that_are_not_there_are_named() -> None:
    with pytest.raises(BadInput, match="holds no generator"):
        plan("egs_tssa")


@pytest.mark.parametrize("name", [*TABLES, "imagenet_sparsity", "imagenet_transfer"])
def test_every_table_has_every_attack(name: str) -> None:
    read = plan(name)
    attacks = {attack.card.name for one in read.products for attack in one.attacks}
    assert attacks >= COMPARED | OURS


@pytest.mark.parametrize("name", TABLES)
def test_attacks_of_a_table_keep_to_2000_passes_except_for_papers_own_settings(name: str) -> None:
    for one in plan(name).products:
        own = one.max_passes != 2000
        assert not own or (name == "table1" and "[0:50]" in one.data[0])


@pytest.mark.parametrize("name", ["table1", "table2", "imagenet_sparsity", "imagenet_fast_at"])
def test_random_attacks_have_five_seeds(name: str) -> None:
    products = plan(name).products
    seeds: dict[tuple[str, str], set[int]] = {}
    for one in products:
        for attack in one.attacks:
            for model in one.models:
                key = (model, str(describe(attack)))
                if attack.facts().random and one.max_passes == 2000:
                    seeds.setdefault(key, set()).update(one.seeds)
    assert seeds
    assert all(found == {0, 1, 2, 3, 4} for found in seeds.values()), seeds


@pytest.mark.parametrize("name", ["table4", "imagenet_time"])
def test_every_timed_network_is_attacked_in_a_batch_and_alone(name: str) -> None:
    sizes: dict[str, set[int | None]] = {}
    for one in plan(name).products:
        for model in one.models:
            sizes.setdefault(model, set()).add(one.batch_size)
    assert all(found == {1, 64} for found in sizes.values()), sizes


def test_untargeted_cells_of_the_leaderboard_are_shared() -> None:
    """The same attack, limits and batches, so that rows need not be made twice."""
    board = read_plan(ROOT / "plans" / "leaderboard.toml")
    known = [describe(attack) for attack in board.products[0].attacks]
    first = plan("table1").products[0]
    shared = [describe(attack) for attack in first.attacks if describe(attack) in known]
    assert len(shared) >= 11
    same = ("max_passes", "device", "precision", "images_per_cell", "batch_size", "data")
    theirs = next(one for one in board.products if first.models[0] in one.models)
    assert all(getattr(first, name) == getattr(theirs, name) for name in same)


def test_a_variant_without_a_change_is_the_printed_attack(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    name = "plans/paper/variants.py:Variant"
    settings = {"steps": 6, "tau": 0.01, "keep": "sparsest"}
    ours = run_attack(build({"name": name, **settings}), curved, images, curved_labels)
    printed = {"name": "wifgsm_printed", **settings}
    theirs = run_attack(build(printed), curved, images, curved_labels)
    assert torch.equal(ours.adversarial, theirs.adversarial)
    assert theirs.success.any()


@pytest.mark.parametrize(
    "change",
    [
        {"start": {"name": "ifgsm", "eps": 2 / 255}},
        {"start": {"name": "plans/paper/variants.py:RandomSign"}},
        {"rule": "clip"},
        {"relu": "plain"},
        {"relu": "none"},
        {"slope": "straight_through"},
        {"slope": "hard_concrete"},
    ],
    ids=str,
)
def test_every_variant_changes_the_result(
    change: dict[str, Any], curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    name = "plans/paper/variants.py:Variant"
    settings = {"steps": 6, "tau": 0.01, "keep": "sparsest", "lam": 1.0, "loss_scale": 1e3}
    results = [
        run_attack(build({"name": name, **settings, **some}), curved, images, curved_labels)
        for some in ({}, change)
    ]
    assert not torch.equal(results[0].adversarial, results[1].adversarial)
    assert all(one.adversarial.min() >= 0 and one.adversarial.max() <= 1 for one in results)


def test_without_a_relu_all_gates_are_open() -> None:
    variant = build({"name": "plans/paper/variants.py:Variant", "relu": "none"})
    gates = torch.tensor([[[[-3.0, 0.5]]]])
    own = cast(Any, variant)
    assert torch.equal(own._gates(gates), gates)
    x, delta = torch.full_like(gates, 0.5), torch.full_like(gates, 4 / 255)
    adv = own._valid(x, delta, torch.full_like(gates, 255 / 8), gates)
    assert torch.allclose(adv, torch.tensor([[[[0.0, 1.0]]]]), atol=1e-6)


def test_the_hard_concrete_slope_is_that_of_the_expected_count() -> None:
    own = cast(Any, build({"name": "plans/paper/variants.py:Variant", "slope": "hard_concrete"}))
    w = torch.linspace(-4, 4, 9, dtype=torch.double, requires_grad=True)
    expected = torch.sigmoid(w - 2 / 3 * np.log(0.1 / 1.1)).sum()
    (slope,) = torch.autograd.grad(expected, w)
    assert torch.allclose(own._count_slope(w.detach()), slope, atol=1e-6)


class _Paint(Attack):
    """Paints an image in the shade of its generator."""

    shade: float

    def __init__(self, shade: float) -> None:
        object.__setattr__(self, "shade", shade)

    def __call__(self, problem: Any) -> Tensor:
        return torch.full_like(problem.images, self.shade)


def test_each_image_gets_the_generator_of_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = variants().GeneratorPerTarget
    monkeypatch.setattr(cls, "_generators", lambda self: {0: _Paint(0.25), 2: _Paint(0.75)})
    monkeypatch.setattr(cls, "__post_init__", lambda self: None)

    class Problem:
        images = torch.zeros(3, 1, 2, 2)
        goal = Goal(torch.tensor([1, 1, 1]), torch.tensor([2, 0, 2]))

        def __getitem__(self, rows: Tensor) -> "Problem":
            part = Problem()
            part.images = self.images[rows]
            return part

    adv = cls()(Problem())
    assert adv[:, 0, 0, 0].tolist() == [0.75, 0.25, 0.75]


def test_a_folder_without_generators_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there are no generators"):
        variants().GeneratorPerTarget(folder=str(tmp_path))


@pytest.fixture(scope="module")
def keras() -> dict[str, Any]:
    """Weights under all names of Keras, random in the first layer."""
    rng = np.random.default_rng(0)
    net = import_own("plans/paper/networks.py", "a network").keras_resnet50()
    convert = import_own("plans/paper/convert_resnet50.py", "a conversion")
    state = net.state_dict()
    weights: dict[str, Any] = {}
    for conv, norm, keras_conv, keras_norm in convert._layers():
        out, deep, high, wide = state[f"{conv}.weight"].shape
        weights[f"{keras_conv}/kernel"] = np.zeros((high, wide, deep, out), np.float32)
        weights[f"{keras_conv}/bias"] = np.zeros(out, np.float32)
        for name, ours in convert.NORM.items():
            weights[f"{keras_norm}/{name}"] = np.ones(state[f"{norm}.{ours}"].shape, np.float32)
    weights["fc1000/kernel"] = np.zeros((2048, 1000), np.float32)
    weights["fc1000/bias"] = np.zeros(1000, np.float32)
    first = {name for name in weights if name.startswith(("conv1/", "bn_conv1/"))}
    for name in sorted(first):
        weights[name] = rng.random(weights[name].shape, np.float32) + np.float32(0.5)
    return weights


def converted(keras: dict[str, Any]) -> Any:
    net = import_own("plans/paper/networks.py", "a network").keras_resnet50()
    state = import_own("plans/paper/convert_resnet50.py", "a conversion").convert(keras)
    net.load_state_dict(state, assign=True)
    return net


def test_the_converted_weights_fit_the_network(keras: dict[str, Any]) -> None:
    net = converted(keras)
    strides = [net.get_submodule(f"layer2.0.conv{place}").stride for place in (1, 2)]
    assert strides == [(2, 2), (1, 1)]
    assert {one.eps for one in net.modules() if isinstance(one, nn.BatchNorm2d)} == {1e-3}


def test_the_first_layer_computes_what_keras_does(keras: dict[str, Any]) -> None:
    net = converted(keras)
    image = torch.rand(1, 3, 9, 9, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ours = net.bn1(net.conv1(image))
    blue_first = nn.functional.pad(image.flip(1), (3, 3, 3, 3))[0].permute(1, 2, 0).numpy()
    kernel = keras["conv1/kernel"]
    there = np.einsum("hwc,hwco->o", blue_first[:7, :7], kernel) + keras["conv1/bias"]
    gamma, beta, mean, variance = (
        keras[f"bn_conv1/{name}"] for name in ("gamma", "beta", "moving_mean", "moving_variance")
    )
    there = gamma * (there - mean) / np.sqrt(variance + 1e-3) + beta
    assert np.allclose(ours[0, :, 0, 0].numpy(), there, rtol=1e-4, atol=1e-3)


def test_weights_without_a_place_are_seen(keras: dict[str, Any]) -> None:
    convert = import_own("plans/paper/convert_resnet50.py", "it").convert
    with pytest.raises(AssertionError, match="without a place"):
        convert(keras | {"conv9/kernel": keras["conv1/kernel"]})


def test_other_weights_than_those_of_the_package_are_refused(keras: dict[str, Any]) -> None:
    networks = import_own("plans/paper/networks.py", "a network")
    state = import_own("plans/paper/convert_resnet50.py", "a conversion").convert(keras)
    with pytest.raises(BadInput, match=f"not {networks.RESNET50_SHA256}; to make them again"):
        networks.checked_resnet50(state)
    with pytest.raises(BadInput, match="SHA-256"):
        networks.checked_resnet50({"conv1.weight": state["conv1.weight"]})


def test_page_and_rows_are_of_the_converted_weights() -> None:
    """What a cell has of a network is a hash of its weights, mean and std."""
    networks = import_own("plans/paper/networks.py", "a network")
    page = (ROOT / "docs/results/paper_table3.md").read_text(encoding="utf-8")
    assert f"\n{networks.RESNET50_SHA256}\n" in page
    mean, std = tuple(value / 255 for value in networks._MEAN), (1 / 255,) * 3
    text = f"{networks.RESNET50_SHA256} {mean} {std}"
    victims = {
        victim
        for cell, _ in Store(ROOT / "results/paper").cells().values()
        for victim in cell.victims
    }
    weights = hashlib.sha256(text.encode()).hexdigest()
    assert ("plans/paper/networks.py:imagenet_resnet50", weights) in victims


def test_settings_of_variants_are_plain_data() -> None:
    spec = {"name": "plans/paper/variants.py:Variant", "rule": "clip", "start": {"name": "pgd"}}
    attack = build(spec)
    assert build(describe(attack)) == attack
    own = set(describe(attack)) - set(describe(build("wifgsm_printed")))
    assert own == {"start", "rule", "relu", "slope"}
