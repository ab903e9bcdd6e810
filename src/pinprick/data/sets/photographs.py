"""The photographs that come with scikit-image, which the extra ``demo`` installs.

They are read from its files, so nothing is fetched. A photograph has a label where ImageNet has
exactly one class for it; the cat, the rocket and the motorcycle fit several or none.
"""

from importlib.util import find_spec
from pathlib import Path

from pinprick.data.pictures import Photo, PictureRecord, read_picture
from pinprick.errors import MissingExtra

_FILES = {
    "chelsea": ("chelsea.png", ""),
    "coffee": ("coffee.png", "espresso"),
    "camera": ("camera.png", "tripod"),
    "rocket": ("rocket.jpg", ""),
    "motorcycle": ("motorcycle_left.png", ""),
}


def read_photographs() -> list[Photo]:
    """A cat, a cup of coffee, a man with a camera, a rocket and a motorcycle."""
    spec = find_spec("skimage")
    if spec is None or spec.origin is None:
        raise MissingExtra("the photographs of the demo", "scikit-image", "demo")
    folder = Path(spec.origin).parent / "data"
    return [
        Photo(
            PictureRecord(name, folder / file, label_name=label_name),
            read_picture(folder / file)[0],
        )
        for name, (file, label_name) in _FILES.items()
    ]
