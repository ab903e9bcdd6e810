"""Makes again what README holds of the program's own making; ``scripts/docs`` runs it.

The table of attacks comes from the cards. The picture is a figure as ``pinprick attack`` writes it,
of the rocket of the demo, by the default attack on the embedded model.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pinprick.data.photographs import read_photographs
from pinprick.report.attack_table import attack_table

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "attack.png"
TABLE = re.compile(r"(?<=<!-- table of attacks -->\n).*?(?=<!-- end of table -->)", re.DOTALL)


def make_table() -> None:
    """Put the table between its two marks."""
    table = attack_table("docs/methods/")
    text, found = TABLE.subn(lambda _: f"{table}\n", README.read_text(encoding="utf-8"))
    assert found == 1, "README has lost the marks around its table"
    README.write_text(text, encoding="utf-8")


def make_picture() -> None:
    """Attack the rocket and keep the figure."""
    rocket = {photo.name: photo.path for photo in read_photographs()}["rocket"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["pinprick", "attack", rocket, "--out", folder], check=True)
        PICTURE.parent.mkdir(exist_ok=True)
        shutil.copyfile(Path(folder) / f"{rocket.stem}-figure.png", PICTURE)


MAKERS = {"table": make_table, "picture": make_picture}

if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        if name not in MAKERS:
            sys.exit(f"scripts/docs makes {' and '.join(MAKERS)}, not {name}")
        MAKERS[name]()
