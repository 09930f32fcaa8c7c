"""The kernel cache: it hits in the next process, misses after a change in the losses, never falls back
elsewhere.
"""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import dualgap

# A small program with one kernel that calls a loss; it prints the answer and whether the machine code was
# loaded.
PROGRAM = """
    from dualgap.core.evaluation import losses_at_zero
    from dualgap.core.losses import Hinge
    from dualgap.runtime.arrays import canonical
    import numpy as np
    ones = canonical(np.ones(3), float)
    value, _ = losses_at_zero(ones, ones, Hinge())
    print(value, "hit" if losses_at_zero.stats.cache_hits else "miss")
"""


def run(package: Path, cache: Path | str, program: str = PROGRAM, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "DUALGAP", "XDG"))}
    env |= {"PYTHONPATH": str(package.parent), "DUALGAP_CACHE": str(cache), **environment}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that a test may edit."""
    source = Path(dualgap.__file__).parent
    return Path(
        shutil.copytree(source, tmp_path / "copy" / "dualgap", ignore=shutil.ignore_patterns("__pycache__"))
    )


@pytest.mark.slow
def test_hits_in_the_next_process_and_misses_after_a_change_in_the_losses(
    package: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    assert run(package, cache) == "3.0 miss"
    assert run(package, cache) == "3.0 hit"
    losses = package / "core" / "losses" / "margin.py"
    text = losses.read_text()
    changed = text.replace(
        "return short if short > 0.0 else 0.0", "return 2.0 * short if short > 0.0 else 0.0"
    )
    assert changed != text
    losses.write_text(changed)
    assert run(package, cache) == "6.0 miss"  # Numba by itself would go on answering 3.0
    losses.write_text(text)
    assert run(package, cache) == "3.0 hit"
    # nothing was written beside the sources
    assert not list(package.rglob("*.nb?"))


@pytest.mark.slow
def test_a_change_elsewhere_keeps_the_cache(package: Path, tmp_path: Path) -> None:
    assert run(package, tmp_path / "cache") == "3.0 miss"
    (package / "training" / "callbacks.py").write_text(
        (package / "training" / "callbacks.py").read_text() + "\n# a remark\n"
    )
    assert run(package, tmp_path / "cache") == "3.0 hit"


@pytest.mark.slow
def test_where_no_folder_can_be_written_nothing_is_cached(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(package, tmp_path / "file" / "cache") == "3.0 miss"
    assert run(package, tmp_path / "file" / "cache") == "3.0 miss"
    assert not list(tmp_path.rglob("*.nb?"))


@pytest.mark.slow
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
    from dualgap.runtime.jit import cache_root

    monkeypatch.setenv("DUALGAP_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    monkeypatch.delenv("DUALGAP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "dualgap"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_root() == tmp_path / "home" / ".cache" / "dualgap"


@pytest.mark.slow
def test_the_stamp_covers_kernels_of_other_files_however_far_away(package: Path, tmp_path: Path) -> None:
    """A kernel that calls one of another file, which calls one of a third."""
    for name, text in {
        "third": "@inner\ndef third(x: float) -> float:\n    return 3.0 * x\n",
        "second": "from .third import third\n\n"
        "@kernel\ndef second(x: float) -> float:\n    return third(x)\n",
        "first": "from .second import second\n\n"
        "@kernel\ndef first(x: float) -> float:\n    return second(x)\n",
    }.items():
        (package / f"{name}.py").write_text(f"from .runtime.jit import inner, kernel\n{text}")
    program = """
        from dualgap.first import first
        print(first(1.0), "hit" if first.stats.cache_hits else "miss")
    """
    cache = tmp_path / "cache"
    assert run(package, cache, program) == "3.0 miss"
    assert run(package, cache, program) == "3.0 hit"
    (package / "third.py").write_text((package / "third.py").read_text().replace("3.0", "5.0"))
    assert run(package, cache, program) == "5.0 miss"


def test_types_are_all_named() -> None:
    """Kernels meet the types as arguments, so no import tells that they call their methods."""
    from dualgap.runtime.jit import TYPES, made_of

    root = Path(dualgap.__file__).parent
    marked = {path for path in root.rglob("*.py") if "@kernel_type" in path.read_text()}
    named = {root / name for name in TYPES}
    assert marked <= named
    for path in marked:
        module = importlib.import_module(".".join(["dualgap", *path.relative_to(root).with_suffix("").parts]))
        assert {Path(file) for file in made_of(vars(module))} <= named


def test_kernels_are_imported_by_name() -> None:
    """The stamp looks at the dispatchers in a module's namespace: those behind a module's name would be
    missed.
    """
    for path in Path(dualgap.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        kernels = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_kernel(node)]
        for kernel in kernels:
            calls = [node.func for node in ast.walk(kernel) if isinstance(node, ast.Call)]
            modules = {"rows", "loss", "rate", "np", "math"}  # arguments with methods; libraries
            owners = {
                f.value.id for f in calls if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)
            }
            arguments = {argument.arg for argument in kernel.args.args}
            assert owners <= modules | arguments, (
                f"{path.name}:{kernel.name} calls by way of {owners - modules}"
            )


def _is_kernel(node: ast.FunctionDef) -> bool:
    names = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return any(isinstance(name, ast.Name) and name.id in {"kernel", "inner"} for name in names)
