"""Results and explanations as a notebook shows them."""

import math
from dataclasses import replace
from xml.etree import ElementTree

import torch
from attacked_images import attacked

from pinprick import Classifier, explain_result, run_attack
from pinprick.attacks import Greedy
from pinprick.report.notebook_html import result_html


def parsed(html: str) -> ElementTree.Element:
    """The elements; ``<br>`` is the only one that is not closed."""
    return ElementTree.fromstring(html.replace("<br>", "<br/>"))


def test_a_result_shows_its_summary_and_one_picture_per_image() -> None:
    html = attacked(1, 1, math.inf, name="pin")._repr_html_()
    page = parsed(html)
    text = "".join(page.itertext())
    assert "pin on net" in text
    assert "fooled 2 of 3 correct images; median 1 pixels, 1 elements" in text
    assert len(page.findall(".//figure")) == 3
    assert len(page.findall(".//circle")) == 2  # one per changed pixel
    assert "not found" in text
    assert "class 0 → class 1" in text


def test_a_mark_is_where_the_pixel_changed() -> None:
    (mark,) = parsed(attacked(1)._repr_html_()).findall(".//circle")
    assert (mark.get("cx"), mark.get("cy")) == ("0.5", "0.5")
    (square,) = parsed(attacked(1)._repr_html_()).findall(".//rect")
    assert square.get("fill") == "rgb(255, 0, 0)"  # red is all that changed, of black


def test_a_long_result_shows_its_first_images() -> None:
    page = parsed(result_html(attacked(*[1.0] * 5), most=2))
    assert len(page.findall(".//figure")) == 2
    assert "and 3 more images" in "".join(page.itertext())


def test_a_dense_change_is_shown_as_the_adversarial_image() -> None:
    page = parsed(attacked(10)._repr_html_())
    assert page.findall(".//circle") == []
    assert len(page.findall(".//image")) == 1


def test_many_changed_pixels_of_a_large_image_are_not_marked_one_by_one() -> None:
    images = torch.zeros(1, 3, 300, 300)
    adv = images.clone()
    adv[0, :, ::12, ::12] = 1.0  # 625 pixels, below 1 %
    html = replace(attacked(1), images=images, adversarial=adv)._repr_html_()
    assert "<circle" not in html
    assert len(html) < 30_000


def test_names_are_text_and_large_pictures_are_reduced() -> None:
    result = attacked(1, name="<b>&")
    large = torch.rand(1, 3, 600, 500, generator=torch.Generator().manual_seed(0))
    adv = large.clone()
    adv[0, :, 7, 9] = 1.0
    html = replace(result, images=large, adversarial=adv, model='"><script>')._repr_html_()
    assert "<script>" not in html
    assert len(html) < 60_000
    (mark,) = parsed(html).findall(".//circle")
    assert (mark.get("cx"), mark.get("cy")) == ("9.5", "7.5")


def test_a_result_without_images_or_without_correct_ones_is_shown() -> None:
    assert "0 images, none of them" in attacked(1)[[]]._repr_html_()
    assert "1 image, none of them" in attacked(0, wrong=1)._repr_html_()


def test_an_explanation_shows_its_groups_and_their_effects(
    linear: Classifier, images: torch.Tensor, labels: torch.Tensor
) -> None:
    result = run_attack(Greedy(), linear, images[:2], labels[:2])
    (one, _) = explain_result(result, linear, maps=False).explanations
    page = parsed(one._repr_html_())
    places, bars = page.findall(".//svg")
    assert len(places.findall("rect")) == one.changed_pixels
    assert len(bars.findall("rect")) == 2 * len(one.groups)
    shown = [float(text.text or "") for text in bars.findall("text")[1::3]]
    largest = one.groups[one.order[0]].shapley
    assert shown[0] == round(largest.obscuring, 2)
    names = [f"group {number}" for number in one.order]  # as in the figures and the JSON file
    assert [text.text for text in bars.findall("text")[::3]] == names
    assert [text.text for text in places.findall("text")] == [str(n) for n in one.order]
    assert (one.changed_pixels, len(one.groups)) == (1, 1)
    said = f"1 changed pixel in 1 group: the margin is lower by {one.margin:.2f}"
    assert said in "".join(page.itertext())
    assert len(set((places.get("viewBox") or "").split()[2:])) == 1  # the shape tells nothing
    object.__setattr__(one, "method", "<script>")  # as a file may have it
    assert "<script>" not in one._repr_html_()


def test_an_explanation_without_a_change_says_so(
    linear: Classifier, images: torch.Tensor, labels: torch.Tensor
) -> None:
    wrong = (labels[:1] + 1) % 4
    result = run_attack(Greedy(), linear, images[:1], wrong)
    (one,) = explain_result(result, linear, maps=False).explanations
    assert "no pixel changed" in one._repr_html_()
