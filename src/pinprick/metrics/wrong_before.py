"""The warning that many images were misclassified before the attack: often the labels are at fault.

Such images are skipped, so the fooling rate is over the few others.
"""

_MANY = 0.2  # share of the images


def many_wrong(wrong: int, images: int) -> str:
    """A sentence if more than 20 % of the images were misclassified; otherwise empty text."""
    if wrong <= _MANY * images:
        return ""
    return (
        f"{wrong} of {images} images ({100 * wrong / images:.0f} %) are misclassified before the "
        "attack: check that the labels follow the classes of the model, and that the model gets "
        "images as it was trained on"
    )
