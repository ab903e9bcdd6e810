"""Styles and scripts of pages: files of the package, joined into one text for a single file.

A script is a module with imports and exports, which a server can hand out as it is. For a single
file each module becomes a function that is called once and returns what it exports; an import
takes names out of what another module returned.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "assets"
STYLES = ("colours", "page", "plots", "gallery", "dialog", "print")
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z_]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:const|function|class) (\w+))", re.MULTILINE)


def style() -> str:
    """All styles in order."""
    return "\n".join((FOLDER / f"{name}.css").read_text(encoding="utf-8") for name in STYLES)


def script(name: str) -> str:
    """The module with this name, after all that it imports."""
    return "\n".join(_as_function(each) for each in modules(name))


def modules(name: str) -> list[str]:
    """The names of a module and of all that it imports, each after those that it imports."""
    found: dict[str, None] = {}

    def visit(module: str) -> None:
        for _, wanted in _IMPORT.findall(_source(module)):
            if wanted not in found:
                visit(wanted)
        found[module] = None

    visit(name)
    return list(found)


def _as_function(name: str) -> str:
    source = _source(name)
    exported = ", ".join(_EXPORT.findall(source))
    body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = module_\2;", source)).strip()
    return f"const module_{name} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"


def _source(name: str) -> str:
    return (FOLDER / f"{name}.js").read_text(encoding="utf-8")
