"""The page docs/results/speed.md, and results/speed/aims.md, from the rows in results/speed/."""

from generators.speed import tables
from generators.speed.aims import aims
from generators.speed.figure import save_figure

__all__ = ["PAGES", "save_figure"]

PAGES = {
    "docs/results/speed.md": {
        "answer": tables.answer,
        "attacks": tables.attacks,
        "peers": tables.peers,
        "passes": tables.passes,
        "overhead": tables.overhead,
        "first call": tables.first_call,
        "recording": tables.recording,
        "compiling": tables.compiling,
        "cpu": tables.cpu,
    },
    "results/speed/aims.md": {"aims": aims},
}
