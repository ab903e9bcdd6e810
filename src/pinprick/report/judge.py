"""What another model says of images that were made for the first: does the attack transfer?"""

import numpy as np
import torch
from PIL import Image

from pinprick.model import Classifier
from pinprick.report.row import Prediction, predictions
from pinprick.run import hear
from pinprick.types import Images


def judge_images(judge: Classifier, images: Images) -> list[Prediction]:
    """The judge's class and confidence for each image, brought to its input size if need be.

    A judge of another size sees the image as 8-bit pixels resized as a whole, without a crop.
    """
    seen = torch.stack([_resized(image, judge.size) for image in images])
    with judge.frozen():
        logits = hear(judge, seen.to(judge.device or seen.device))[0]
    return predictions(logits.cpu(), judge)


def _resized(image: torch.Tensor, size: tuple[int, int] | None) -> torch.Tensor:
    if size is None or tuple(image.shape[1:]) == tuple(size):
        return image
    height, width = size
    pixels = (image.cpu() * 255).round().byte().numpy()
    channels = [
        np.asarray(Image.fromarray(channel).resize((width, height), Image.Resampling.BICUBIC))
        for channel in pixels
    ]
    return torch.from_numpy(np.stack(channels)).to(image) / 255
