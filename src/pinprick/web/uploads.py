"""What a browser sends: bounded in bytes before it is read, in pixels before it is decoded."""

import base64
import binascii
import io
import json
import warnings
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from pinprick.data.pictures import as_rgb
from pinprick.errors import BadInput, one_line

PICTURE_BYTES, JSON_BYTES = 20_000_000, 800_000
PICTURE_PIXELS = 40_000_000
_LONGEST = 20  # times the short side: models enlarge the short side, which would not fit memory
_KINDS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")


async def read_body(request: Any, most: int) -> bytes:
    """The body of a request of Starlette; ``BadInput`` as soon as it is longer than ``most``."""
    refusal = BadInput(f"that is more than {most / 1e6:g} MB, the most that is taken")
    given = request.headers.get("content-length", "0")
    if not given.isdecimal() or int(given) > most:
        raise refusal
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise refusal
    return bytes(body)


async def read_fields(request: Any) -> dict[str, Any]:
    """The JSON object in the body of a request."""
    text = await read_body(request, JSON_BYTES)
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput("the request is not JSON") from None
    if not isinstance(fields, dict):
        raise BadInput("the request must be a JSON object")
    return fields


def text_field(fields: dict[str, Any], name: str, *, most: int = 200) -> str:
    """A text of the request; empty where it is missing."""
    value = fields.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise BadInput(f"{name} must be a text of at most {most} characters")
    return value


def number_field(fields: dict[str, Any], name: str, *, least: int, most: int) -> int | None:
    """A whole number of the request; None where it is missing."""
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int or not least <= value <= most:
        raise BadInput(f"{name} must be a whole number from {least} to {most}")
    return value


def numbers_field(fields: dict[str, Any], name: str, *, below: int) -> list[int]:
    """A list of whole numbers from 0, each once."""
    values = fields.get(name)
    if not isinstance(values, list) or len(values) > below:
        raise BadInput(f"{name} must be a list of at most {below} numbers")
    if any(type(value) is not int or not 0 <= value < below for value in values):
        raise BadInput(f"{name} must be numbers from 0 to {below - 1}")
    return sorted(set(values))


def check_picture(data: bytes) -> tuple[int, int]:
    """Width and height of an uploaded picture, from its header alone; ``BadInput`` if not one."""
    with _open(data) as picture:
        return picture.size


def decode_picture(data: bytes) -> Image.Image:
    """The picture in 8-bit RGB, upright, at its own size."""
    try:
        with _open(data) as picture:
            picture.load()
            return as_rgb(picture)[0]
    except BadInput:
        raise
    except Exception as error:  # a broken file makes a decoder raise anything
        raise BadInput(f"the picture is broken ({one_line(error)})") from None


def _open(data: bytes) -> Image.Image:
    """The picture, of which the header alone was read, if it is small enough to be decoded."""
    try:
        with warnings.catch_warnings(action="ignore"):  # its bounds are ours
            picture = Image.open(io.BytesIO(data), formats=_KINDS)
    except UnidentifiedImageError:
        raise BadInput(f"not a picture; {', '.join(_KINDS)} are read") from None
    except Image.DecompressionBombError:
        raise BadInput(_too_large()) from None
    except Exception as error:
        raise BadInput(f"the picture is broken ({one_line(error)})") from None
    short, long = sorted(picture.size)
    if short * long > PICTURE_PIXELS or long > _LONGEST * short:
        picture.close()
        raise BadInput(
            _too_large()
            if short * long > PICTURE_PIXELS
            else f"the picture is more than {_LONGEST} times as long as it is wide"
        )
    return picture


def _too_large() -> str:
    return f"the picture has more than {PICTURE_PIXELS // 1_000_000} million pixels"


def read_mask(text: str, height: int, width: int) -> Bool[Tensor, "1 1 height width"] | None:
    """Where pixels may change, from one bit per pixel in base64; None for an empty text."""
    if not text:
        return None
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("the mask is not base64") from None
    if len(packed) != (height * width + 7) // 8:
        raise BadInput(f"the mask must have one bit for each of {height} x {width} pixels")
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=height * width)
    mask = torch.from_numpy(bits.astype(bool)).view(1, 1, height, width)
    if not mask.any():
        raise BadInput("the mask is empty, so nothing may change; paint where pixels may change")
    return mask
