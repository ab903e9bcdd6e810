"""The thousand classes of ImageNet in the order that every ImageNet network has them."""

from pathlib import Path

_SYNSETS = Path(__file__).parent / "imagenet_synsets.txt"


def imagenet_classes() -> tuple[str, ...]:
    """In words, read from torchvision, which keeps them beside its weights; nothing is fetched."""
    from torchvision.models import ResNet18_Weights

    return tuple(ResNet18_Weights.IMAGENET1K_V1.meta["categories"])


def synset_numbers() -> dict[str, int]:
    """The number of each class by its WordNet synset, as in n01440764, which folders are called."""
    synsets = _SYNSETS.read_text(encoding="ascii").split()
    return {synset: number for number, synset in enumerate(synsets)}
