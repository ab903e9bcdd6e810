"""An explanation as the page shows it: groups of changed pixels with their effects."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pinprick.pages.report_parts import Bytes


def explained_groups(explanation: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Effects per group, the largest first, and the whole change of both scores.

    Args:
        explanation: An ``Explanation`` as plain data.
        row: The row of its image, for the names of classes.
    """
    groups = {group["number"]: group for group in explanation["groups"]}
    return {
        "label": row["label_name"],
        "rival": row.get("rival_name") or f"class {explanation['rival']}",
        "obscuring": explanation["obscuring"],
        "leading": explanation["leading"],
        "method": explanation["method"],
        "groups": [
            {
                "number": number,
                "pixels": groups[number]["pixels"],
                "obscuring": groups[number]["shapley"]["obscuring"],
                "leading": groups[number]["shapley"]["leading"],
                "obscuring_error": groups[number]["shapley"]["obscuring_error"],
                "leading_error": groups[number]["shapley"]["leading_error"],
                "kind": groups[number]["shapley"]["label"],
            }
            for number in explanation["order"]
        ],
    }


def explained_change(explanation: Mapping[str, Any], after: Bytes) -> Bytes | None:
    """The clean image: the adversarial one with the pixels of all groups as they were before.

    None where the explanation does not list the pixels.
    """
    clean = after.copy()
    listed = 0
    for group in explanation["groups"]:
        for (row, column), values in zip(group["pixels"], group["before"], strict=True):
            clean[row, column] = np.round(np.asarray(values) * 255)
            listed += 1
    return clean if listed == explanation["changed_pixels"] else None
