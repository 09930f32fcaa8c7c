"""The first fit of a process: how much it compiles stays as little as it is."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import dualgap
from support.ceilings import ceiling
from support.compiling import LAYOUTS, LOSSES, compiled_by_first_fits

PACKAGE = Path(dualgap.__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_first_fit_compiles_no_more_functions_than_it_did(layout: str) -> None:
    for loss in LOSSES:
        found = compiled_by_first_fits(layout)[loss]
        assert len(found) <= ceiling("compiled", layout, loss), "\n".join(one.name for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_one_role_have_one_type(layout: str) -> None:
    """No function of ours is compiled twice for a fit: not for read-only and writable vectors, not for two
    types of row numbers, not for callers with different options.
    """
    for loss in LOSSES:
        found = compiled_by_first_fits(layout)[loss]
        counts = Counter(one.name for one in found if one.name.startswith("dualgap."))
        twice = [one for one in found if counts[one.name] > 1]
        assert not twice, "\n".join(f"{one.name} {one.signature}" for one in twice)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_text_is_compiled(layout: str) -> None:
    """Numba's code for strings takes seconds to compile."""
    for loss in LOSSES:
        for one in compiled_by_first_fits(layout)[loss]:
            assert "unicode" not in f"{one.name} {one.signature}"


def kernels(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions of a file that Numba compiles: kernels, what they call, methods of kernel types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = {ast.unparse(one).partition("(")[0] for one in node.decorator_list}
            if isinstance(node, ast.FunctionDef) and names & {"kernel", "inner"}:
                yield node
            elif isinstance(node, ast.ClassDef) and names & {"kernel_type", "loss_type"}:
                yield from (one for one in node.body if isinstance(one, ast.FunctionDef))


def needs_text(function: ast.FunctionDef) -> list[int]:
    """Lines for which Numba compiles its code for strings: assignments to slices, whose error message it
    formats, and messages of our own.
    """
    found = []
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        sliced = any(
            isinstance(one, ast.Slice)
            for target in targets
            if isinstance(target, ast.Subscript)
            for one in ast.walk(target.slice)
        )
        if sliced or isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
            found.append(node.lineno)
    return found


def test_no_kernel_needs_text() -> None:
    seen = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        for function in kernels(ast.parse(path.read_text())):
            seen += 1
            assert not needs_text(function), f"{path.relative_to(PACKAGE)}: {function.name}"
    assert seen > 100


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("a[:] = b", True),
        ("a[i, 2:] += b", True),
        ("raise ValueError(f'{a}')", True),
        ("a[i] = b[1:]", False),
    ],
)
def test_what_needs_text_is_told(line: str, wrong: bool) -> None:
    (function,) = kernels(ast.parse(f"@kernel(fastmath=True)\ndef f(a, b, i):\n    {line}"))
    assert bool(needs_text(function)) is wrong
