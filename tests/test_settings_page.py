"""The page on settings has every setting of every attack."""

from pathlib import Path

import pytest

from pinprick.attacks import ATTACKS
from pinprick.report.docs_settings import settings_reference
from pinprick.settings import types_of

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "settings.md").read_text(
    encoding="utf-8"
)


def test_the_page_is_what_the_fields_say() -> None:
    _, _, rest = PAGE.partition("<!-- settings -->\n")
    made, _, _ = rest.partition("\n<!-- end of settings -->")
    assert made == settings_reference("../methods/"), "out of step; run scripts/docs settings"


@pytest.mark.parametrize("name", ATTACKS)
def test_every_setting_and_preset_is_in_the_section_of_its_attack(name: str) -> None:
    section = PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert f"](../methods/{name}.md)" in section
    for setting in types_of(ATTACKS[name]):
        assert f"\n- `{setting}` = `" in section
    for preset in ATTACKS[name].presets:
        assert f"\n- `preset={preset}`: " in section


def test_a_line_has_the_default_the_range_and_the_meaning() -> None:
    assert "\n- `steps` = `20` (>= 1): Number of gradient steps of a restart.\n" in PAGE
    assert "\n- `eps` = `8/255` (above 0 and at most 1): Length of the step" in PAGE
    assert "\n- `budgets` = `5,10,20,50` (>= 1): " in PAGE
    assert "\n- `k` = `50` (>= 1, or `smallest`): " in PAGE
