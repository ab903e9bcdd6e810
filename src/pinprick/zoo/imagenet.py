"""The thousand classes of ImageNet in words, in the order every ImageNet network has them."""


def imagenet_classes() -> tuple[str, ...]:
    """Read from torchvision, which keeps the names beside its weights; nothing is downloaded."""
    from torchvision.models import ResNet18_Weights

    return tuple(ResNet18_Weights.IMAGENET1K_V1.meta["categories"])
