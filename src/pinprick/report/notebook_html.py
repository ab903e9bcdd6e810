"""Results and explanations as a notebook shows them: a summary, and pictures with marks.

The HTML has no script and loads nothing. Colours of text are those of the notebook, light or dark.
"""

import base64
import io
import math
from collections.abc import Iterable, Sequence
from html import escape

import torch
from PIL import Image

from pinprick.explain.noise.explanation import Explanation, Group
from pinprick.metrics.needed import median_needed
from pinprick.report.words import amount, duration
from pinprick.result import AttackResult
from pinprick.types import Picture

_MOST = 8  # images in a strip
_SIDE = 128  # pixels of a picture; larger ones are reduced, their marks are not
_DENSE = 0.05  # share of changed pixels from which the adversarial image itself is drawn
_MARKED = 400  # changed pixels of an image up to which they are marked: each takes 200 bytes
_RING, _WIDTH = "#c13a1b", 132  # colour of marks, and width of a picture on the screen


def result_html(result: AttackResult, most: int = _MOST) -> str:
    """The summary of a result, and its first images with changed pixels marked."""
    shown = result[:most].to("cpu") if len(result) else result
    rest = len(result) - len(shown)
    return _block(
        f"<b>{escape(str(result.attack.get('name', 'unnamed attack')))}</b> on "
        f"{escape(result.model or 'unnamed model')}",
        _summary(result),
        _strip(map(_figure, shown)),
        f"and {rest:,} more images; <code>pinprick report</code> shows all" if rest > 0 else "",
    )


def explanation_html(explanation: Explanation) -> str:
    """What the change does as a whole, where its groups are, and the effect of each as bars."""
    heading = (
        f"<b>image {explanation.id:d}</b>, {escape(explanation.status)}: class "
        f"{explanation.label:d} against class {explanation.rival:d}"
    )
    if not explanation.groups:
        return _block(heading, "no pixel changed", "", "")
    summary = (
        f"{_plural(explanation.changed_pixels, 'changed pixel')} in "
        f"{_plural(len(explanation.groups), 'group')}: the margin is lower by "
        f"{explanation.margin:.2f}, obscuring {explanation.obscuring:+.2f}, "
        f"leading {explanation.leading:+.2f} ({escape(explanation.method)})"
    )
    groups = {group.number: group for group in explanation.groups}
    order = [groups[number] for number in explanation.order]
    note = "dashed: obscuring the label; filled: leading to the other class; in logits"
    return _block(heading, summary, _strip([_places(order), _bars(order)]), note)


def _plural(number: int, word: str) -> str:
    return f"{number:d} {word}{'' if number == 1 else 's'}"


def _block(heading: str, summary: str, pictures: str, note: str) -> str:
    parts = [f"<div>{heading}</div>", f"<div>{summary}</div>", pictures]
    if note:
        parts.append(f'<div style="opacity:.65;font-size:.9em">{note}</div>')
    return f'<div style="font-family:sans-serif;line-height:1.5">{"".join(parts)}</div>'


def _summary(result: AttackResult) -> str:
    correct = result.correct
    count = int(correct.sum())
    if not count:
        return (
            f"{_plural(len(result), 'image')}, none of them classified correctly before the attack"
        )
    fooled = int((result.success & correct).sum())
    pixels, elements = (
        float(median_needed(needed[correct].cpu().numpy())[0])
        for needed in (result.needed_pixels, result.needed_elements)
    )
    passes = (result.forwards + result.backwards)[correct].double().mean().item()
    return (
        f"fooled {fooled} of {count} correct images; median {_count(pixels)} pixels, "
        f"{_count(elements)} elements; {passes:,.0f} passes per image; {duration(result.seconds)}"
    )


def _count(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:g}"


def _strip(figures: Iterable[str]) -> str:
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:14px;margin:.7em 0">{"".join(figures)}</div>'
    )


def _figure(one: AttackResult) -> str:
    """One image with its changed pixels marked, and what it took."""
    clean, adv = one.images[0], one.adversarial[0]
    changed = (clean != adv).any(dim=0)
    dense = int(changed.sum()) > min(_MARKED, _DENSE * changed.numel())
    _, height, width = clean.shape
    marks = "" if dense else _marks(adv, changed)
    label, after = int(one.goal.labels[0]), int(one.adversarial_logits[0].argmax())
    if bool(one.skipped[0]):
        outcome = "met the goal before"
    elif bool(one.success[0]):
        outcome = f"class {label} → class {after}"
    else:
        outcome = str(one.remarks[0]) or "not fooled"
    percent = float(one.l0_pixels_percent[0])
    words = (escape(amount(int(one.l0_pixels[0]), "pixels", percent)), escape(outcome))
    return (
        f'<figure style="margin:0;width:{_WIDTH}px">'
        f'<svg viewBox="0 0 {width} {height}" width="{_WIDTH}" role="img" '
        f'aria-label="image {int(one.ids[0])}: {words[0]}, {words[1]}">'
        f'<image href="{_data_uri(adv if dense else clean)}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated"/>{marks}</svg>'
        f'<figcaption style="font-size:.8em">{words[0]}<br>{words[1]}</figcaption></figure>'
    )


def _marks(adv: Picture, changed: torch.Tensor) -> str:
    """A square in the new colour and a ring per changed pixel, large enough to be seen."""
    height, width = changed.shape
    side = max(1.0, max(height, width) / 40)
    marks = []
    for row, column in changed.nonzero().tolist():
        x, y = column + 0.5, row + 0.5
        marks.append(
            f'<rect x="{x - side / 2:g}" y="{y - side / 2:g}" width="{side:g}" height="{side:g}" '
            f'fill="{_colour(adv[:, row, column].tolist())}"/>'
            f'<circle cx="{x:g}" cy="{y:g}" r="{1.3 * side:g}" fill="none" stroke="{_RING}" '
            f'stroke-width="{0.35 * side:g}"/>'
        )
    return "".join(marks)


def _data_uri(picture: Picture) -> str:
    pixels = (picture.detach().float().clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
    grey = pixels.shape[2] not in (3, 4)
    image = Image.fromarray(pixels[:, :, 0] if grey else pixels[:, :, :3])
    if max(image.size) > _SIDE:
        image.thumbnail((_SIDE, _SIDE))
    file = io.BytesIO()
    image.save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _colour(values: Sequence[float]) -> str:
    three = values[:3] if len(values) >= 3 else [values[0]] * 3
    return f"rgb({', '.join(str(round(255 * min(1.0, max(0.0, value)))) for value in three)})"


def _places(groups: Sequence[Group]) -> str:
    """The changed pixels in their new colours, with the number of each group beside its centre."""
    places = [place for group in groups for place in group.pixels]
    if not places:
        return ""
    side = max(max(place) for place in places) + 3  # a square, since the size is not known
    squares = "".join(
        f'<rect x="{column}" y="{row}" width="1" height="1" fill="{_colour(after)}" '
        f'stroke="{_RING}" stroke-width=".15"/>'
        for group in groups
        for (row, column), after in zip(group.pixels, group.after, strict=True)
    )
    size = side / 18
    names = "".join(
        f'<text x="{group.centre[1] + 1:g}" y="{group.centre[0]:g}" font-size="{size:g}" '
        f'fill="currentColor">{group.number}</text>'
        for group in groups
    )
    return (
        f'<svg viewBox="-1 -1 {side + 1} {side + 1}" height="{1.6 * _WIDTH:g}" role="img" '
        f'aria-label="places of {len(places)} changed pixels" style="border:1px solid '
        f'rgba(128,128,128,.4);max-width:100%">{squares}{names}</svg>'
    )


def _bars(groups: Sequence[Group]) -> str:
    """Two bars per group: obscuring dashed, leading filled."""
    effects = [(group, group.shapley.obscuring, group.shapley.leading) for group in groups]
    scale = 150 / max(1e-9, *(max(abs(one), abs(other)) for _, one, other in effects))
    zero = 70 + (150 if any(min(one, other) < 0 for _, one, other in effects) else 0)
    lines = []
    for at, (group, obscuring, leading) in enumerate(effects):
        y = 34 * at + 4
        lines.append(
            f'<text x="0" y="{y + 17}" font-size="12" fill="currentColor">group '
            f"{group.number}</text>{_bar(zero, y, obscuring * scale, obscuring, 'none')}"
            f"{_bar(zero, y + 14, leading * scale, leading, _RING)}"
        )
    height, width = 34 * len(effects) + 4, zero + 210
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="effects of {len(effects)} groups">{"".join(lines)}</svg>'
    )


def _bar(zero: int, y: int, length: float, value: float, fill: str) -> str:
    left, width = min(zero, zero + length), max(0.5, abs(length))
    stripes = "" if fill != "none" else ' stroke-dasharray="3 2"'
    return (
        f'<rect x="{left:g}" y="{y:g}" width="{width:g}" height="11" fill="{fill}" '
        f'stroke="currentColor"{stripes}/>'
        f'<text x="{max(zero, zero + length) + 5:g}" y="{y + 10:g}" font-size="11" '
        f'fill="currentColor">{value:+.2f}</text>'
    )
