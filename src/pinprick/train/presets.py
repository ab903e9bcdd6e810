"""Presets: settings for a dataset, a network and a recipe.

They are applied in order: first those of the data, then of the recipe on such data, then of the
network. All other settings have the default of ``Schedule``, ``Exam`` or the recipe.
"""

from typing import Any

Options = dict[str, Any]

_SMALL_COLOUR: Options = {"crop": 4, "flip": True}
_MNIST: Options = {"optimiser": "adam", "lr": 3e-3, "batch_size": 256, "weight_decay": 0.0}
_IMAGENET: Options = {"flip": True, "weight_decay": 1e-4, "batch_size": 256}

_FEW_LARGE: Options = {"strong_images": 200, "l0_images": 200}

DATA: dict[str, Options] = {
    "mnist": {**_MNIST, "exam_eps": 0.3, "exam_steps": 40, "exam_step_size": 0.01},
    "fashion_mnist": {**_MNIST, "exam_eps": 0.1, "exam_step_size": 0.01},
    "cifar10": {**_SMALL_COLOUR, "exam_eps": 8 / 255},
    "cifar100": {**_SMALL_COLOUR, "exam_eps": 8 / 255},
    "imagenet": {**_IMAGENET, "exam_eps": 2 / 255, "exam_images": 5000, **_FEW_LARGE},
}

_VOTES: Options = {  # the network that is measured votes, so a pass takes as long as its draws
    "watch_images": 100,
    "exam_images": 1000,
    "exam_steps": 10,
    "exam_step_size": None,
    "strong_images": 0,
    "l0_images": 100,
    "l0_queries": 200,
}
_GREY_VOTES: Options = {"epochs": 80, "batch_size": 512, "ema": 0.99, "kept": 45}
_ROBUST: Options = {"batch_size": 256, "lr": 0.2, "lr_shape": ((0.0, 0.0), (0.4, 1.0), (1.0, 0.0))}
_CIFAR: dict[str, Options] = {
    "standard": {
        "epochs": 48,
        "batch_size": 512,
        "lr": 0.4,
        "cutout": 8,
        "ema": 0.98,
        "watch_images": 400,
    },
    "pgd_at": {
        **_ROBUST,
        "epochs": 30,
        "ema": 0.995,
        "eps": 8 / 255,
        "steps": 7,
        "step_size": 2 / 255,
    },
    "fast_at": {**_ROBUST, "epochs": 30, "ema": 0.995, "eps": 8 / 255},
    "n_fgsm": {**_ROBUST, "epochs": 30, "ema": 0.995, "eps": 8 / 255},
    "sparse_at": {
        **_ROBUST,
        "epochs": 20,
        "ema": 0.995,
        "ramp": 0.3,
        "k_max": 96,
        "trades": 6.0,
    },
    "ablation": {**_VOTES, "epochs": 60, "batch_size": 256, "lr": 0.2, "ema": 0.995, "kept": 75},
}

RECIPE: dict[tuple[str, str], Options] = {
    ("mnist", "standard"): {
        "epochs": 20,
        "ema": 0.99,
        "weight_decay": 1e-4,
        "label_smoothing": 0.1,
    },
    ("mnist", "pgd_at"): {"epochs": 12, "eps": 0.3, "steps": 20, "step_size": 0.03, "ramp": 0.4},
    ("mnist", "fast_at"): {"epochs": 10, "eps": 0.3, "ramp": 0.4},
    ("mnist", "n_fgsm"): {"epochs": 10, "eps": 0.3, "noise": 1.0, "ramp": 0.4},
    ("mnist", "sparse_at"): {"epochs": 12, "ramp": 0.4, "k_max": 64},
    ("mnist", "ablation"): {**_VOTES, **_GREY_VOTES},
    ("fashion_mnist", "ablation"): {**_VOTES, **_GREY_VOTES, "flip": True},
    ("fashion_mnist", "standard"): {
        "epochs": 20,
        "flip": True,
        "ema": 0.99,
        "weight_decay": 1e-4,
        "label_smoothing": 0.1,
    },
    ("fashion_mnist", "pgd_at"): {"epochs": 15, "eps": 0.1, "steps": 10, "ramp": 0.3},
    ("fashion_mnist", "fast_at"): {"epochs": 15, "eps": 0.1, "ramp": 0.3},
    **{(data, recipe): _CIFAR[recipe] for data in ("cifar10", "cifar100") for recipe in _CIFAR},
    ("imagenet", "standard"): {
        "epochs": 18,
        "lr": 0.4,
        "label_smoothing": 0.1,
        "phases": ((0.0, 128, 512), (0.35, 224, 256)),
    },
    ("imagenet", "fast_at"): {  # Wong, Rice, Kolter: three phases of growing pictures
        "epochs": 15,
        "lr": 0.4,
        "lr_shape": ((0.0, 0.0), (1 / 15, 1.0), (0.4, 0.1), (0.8, 0.01), (1.0, 0.001)),
        "phases": ((0.0, 128, 512), (0.4, 224, 224), (0.8, 288, 128)),
        "eps": 2 / 255,
    },
}

NET: dict[tuple[str, str], Options] = {
    ("resnet20", "standard"): {
        "epochs": 80,
        "batch_size": 128,
        "lr": 0.2,
        "cutout": 0,
        "ema": 0.998,
        "watch_images": 1000,
    },
    ("resnet20", "pgd_at"): {"epochs": 40, "lr": 0.3, "weight_decay": 2e-4},
    ("vgg16", "standard"): {"epochs": 40, "lr": 0.2},
    ("vgg19", "standard"): {"epochs": 40, "lr": 0.15},
    ("resnet50", "standard"): {"epochs": 24, "lr": 0.1},
    ("mnist_cnn_large", "standard"): {"lr": 1e-3},
    ("mnist_cnn_large", "pgd_at"): {"lr": 1e-3},
}


def preset(data: str, net: str, recipe: str) -> Options:
    """The settings for data, network and recipe; a name without a preset adds none."""
    small = data in ("cifar10", "cifar100", "mnist", "fashion_mnist")
    return {
        **DATA.get(data, {}),
        **RECIPE.get((data, recipe), {}),
        **(NET.get((net, recipe), {}) if small else {}),
    }
