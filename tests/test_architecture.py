"""ARCHITECTURE.md is true: its map equals the tree."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOP = "(top)"


def mapped() -> set[str]:
    """Modules that the map names, as paths below the package."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text[text.index("## The house") : text.index("## What the rooms promise")]
    found, package = set(), ""
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) < 3 or cells[0] in ("package", "---"):
            continue
        if cells[0]:
            package = "" if cells[0] == TOP else cells[0].strip("`")
        found |= {f"{package}{name}.py" for name in re.findall(r"`(\w+)`", cells[1])}
    return found


def test_the_map_equals_the_tree() -> None:
    package = ROOT / "src" / "dualgap"
    tree = {str(path.relative_to(package)) for path in package.rglob("*.py")}
    plain = {name for name in tree if not Path(name).name.startswith("__") and name != "_version.py"}
    assert mapped() == plain


def test_paths_in_the_text_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for name in re.findall(r"`((?:\w+/)+\w+\.py)`", text):
        assert (ROOT / name).exists() or (ROOT / "src" / "dualgap" / name).exists(), name
