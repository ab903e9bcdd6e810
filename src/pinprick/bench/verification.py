"""What a verification found: rows that differ, and rows that could not be judged."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pinprick.bench.stored_rows import Finding


@dataclass
class NotVerified:
    """A model or a set of images that is not there, and the rows that wait for it.

    Attributes:
        name: Name of the model, or the images.
        sha256: The hash that its weights, or the images, should have.
        reason: Why it could not be used.
        command: What brings it here; empty if the reason says it.
        rows: Number of rows.
    """

    name: str
    sha256: str
    reason: str
    command: str
    rows: int = 0


@dataclass
class Verification:
    """What was verified, and what was found.

    Attributes:
        rows: Rows in all cells that could be read.
        verified: Rows whose adversarial image was judged.
        errors: Rows that hold an error, so that there is nothing to verify.
        unsaved: Rows whose perturbation is dense and was not saved; the clean image was judged.
        findings: Values that are others here, and margins within the numerical noise.
        not_verified: Models and images that are not there.
        damaged: Files that are not rows of a cell.
    """

    rows: int = 0
    verified: int = 0
    errors: int = 0
    unsaved: int = 0
    findings: list[Finding] = field(default_factory=list)
    not_verified: list[NotVerified] = field(default_factory=list)
    damaged: list[Path] = field(default_factory=list)

    @property
    def differences(self) -> list[Finding]:
        """Values that are others here, beyond the numerical noise."""
        return [finding for finding in self.findings if not finding.within_noise]

    @property
    def within_noise(self) -> list[Finding]:
        """Margins within the numerical noise, and values that it may have changed."""
        return [finding for finding in self.findings if finding.within_noise]

    @property
    def failed(self) -> bool:
        """Whether a row differs, a file is damaged, or no row at all could be verified."""
        nothing = self.verified == 0 and bool(self.not_verified)
        return bool(self.differences or self.damaged or nothing)

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "rows": self.rows,
            "verified": self.verified,
            "errors": self.errors,
            "unsaved": self.unsaved,
            "differences": [finding.plain() for finding in self.differences],
            "within_noise": [finding.plain() for finding in self.within_noise],
            "not_verified": [vars(one) for one in self.not_verified],
            "damaged": [str(path) for path in self.damaged],
        }
