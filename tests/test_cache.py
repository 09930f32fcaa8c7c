"""The kernel cache: it hits in the next process, misses after a change in the losses, never falls back elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import dualgap

# A small program with one kernel that calls a loss; it prints the answer and whether the machine code was loaded.
PROGRAM = """
    from dualgap.problem import _loss_at_zero
    from dualgap.losses import Hinge
    from dualgap.arrays import canonical
    import numpy as np
    ones = canonical(np.ones(3), float)
    value, _ = _loss_at_zero(ones, ones, Hinge())
    print(value, "hit" if _loss_at_zero.stats.cache_hits else "miss")
"""


def run(package: Path, cache: Path | str, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "DUALGAP", "XDG"))}
    env |= {"PYTHONPATH": str(package.parent), "DUALGAP_CACHE": str(cache), **environment}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that a test may edit."""
    source = Path(dualgap.__file__).parent
    return Path(shutil.copytree(source, tmp_path / "copy" / "dualgap", ignore=shutil.ignore_patterns("__pycache__")))


def test_hits_in_the_next_process_and_misses_after_a_change_in_the_losses(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run(package, cache) == "3.0 miss"
    assert run(package, cache) == "3.0 hit"
    losses = package / "losses.py"
    text = losses.read_text()
    changed = text.replace("return max(0.0, self.margin - y * score)", "return 2.0 * max(0.0, self.margin - y * score)")
    assert changed != text
    losses.write_text(changed)
    assert run(package, cache) == "6.0 miss"  # Numba by itself would go on answering 3.0
    losses.write_text(text)
    assert run(package, cache) == "3.0 hit"
    # nothing was written beside the sources
    assert not list(package.rglob("*.nb?"))


def test_a_change_elsewhere_keeps_the_cache(package: Path, tmp_path: Path) -> None:
    assert run(package, tmp_path / "cache") == "3.0 miss"
    (package / "watchers.py").write_text((package / "watchers.py").read_text() + "\n# a remark\n")
    assert run(package, tmp_path / "cache") == "3.0 hit"


def test_where_no_folder_can_be_written_nothing_is_cached(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(package, tmp_path / "file" / "cache") == "3.0 miss"
    assert run(package, tmp_path / "file" / "cache") == "3.0 miss"
    assert not list(tmp_path.rglob("*.nb?"))


def test_a_read_only_cache_that_was_filled_is_used(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run(package, cache) == "3.0 miss"
    locked = """
        import tempfile
        real = tempfile.TemporaryFile
        def refuse(*args, dir=None, **kwargs):
            if dir is not None and str(dir).startswith({cache!r}):
                raise PermissionError(13, "read-only", str(dir))
            return real(*args, dir=dir, **kwargs)
        tempfile.TemporaryFile = refuse
    """
    site = tmp_path / "site"
    site.mkdir()
    # root may write anywhere, so the refusal of a read-only file system is played here
    (site / "sitecustomize.py").write_text(textwrap.dedent(locked.format(cache=str(cache))))
    before = sorted(p.name for p in cache.rglob("*"))
    assert run(package, cache, PYTHONPATH=f"{site}{os.pathsep}{package.parent}") == "3.0 hit"
    assert sorted(p.name for p in cache.rglob("*")) == before


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dualgap.jit import cache_root

    monkeypatch.setenv("DUALGAP_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    monkeypatch.delenv("DUALGAP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "dualgap"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_root() == tmp_path / "home" / ".cache" / "dualgap"


def test_kernels_call_only_what_the_stamp_covers() -> None:
    """A kernel's stamp covers the building blocks and its own file, so it may call kernels of those only."""
    import ast

    from dualgap.jit import BUILDING_BLOCKS

    root = Path(dualgap.__file__).parent
    kernels: dict[str, set[str]] = {}  # file -> names of its kernels
    trees = {path: ast.parse(path.read_text()) for path in root.rglob("*.py")}

    def is_kernel(node: ast.FunctionDef) -> bool:
        names = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
        return any(isinstance(name, ast.Name) and name.id == "kernel" for name in names)

    for path, tree in trees.items():
        kernels[str(path)] = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and is_kernel(n)}
    blocks = {str(root / name) for name in BUILDING_BLOCKS}
    assert all(Path(block).exists() for block in blocks)
    for path, tree in trees.items():
        allowed = kernels[str(path)].union(*(kernels[block] for block in blocks))
        foreign = set().union(*kernels.values()) - allowed
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and is_kernel(node):
                called = {n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
                assert not called & foreign, f"{path.name}:{node.name} calls {called & foreign}"
