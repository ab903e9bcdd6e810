"""``hf:ORG/NAME``: a classifier from the Hugging Face Hub that timm can build.

``@REVISION`` at the end names a version. The repository's ``config.json`` says which network it
is, and its ``model.safetensors`` holds the weights; a pickle is read as plain tensors, or not.
"""

import re

from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.zoo.download import fetching
from pinprick.zoo.timm import from_config, import_timm


def load(name: str) -> Classifier:
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*(@[\w./-]+)?", name):
        raise BadInput(
            f"a model of the Hugging Face Hub is written hf:ORG/NAME or hf:ORG/NAME@REVISION, "
            f"got {name!r}"
        )
    timm = import_timm(f"the model hf:{name}")
    with fetching(f"hf:{name}"):
        try:
            net = timm.create_model(f"hf-hub:{name}", pretrained=True)
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            if isinstance(error, OSError):  # it is not there, or there is no network
                raise
            raise BadInput(f"hf:{name} is not a model that timm can build ({error!r})") from None
        except RuntimeError as error:
            if "Unknown model" not in str(error):
                raise
            raise BadInput(f"hf:{name} is not a model that timm can build: {error}") from None
    return from_config(net, f"hf:{name}")
