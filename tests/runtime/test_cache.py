"""The kernel cache: it hits in the next process, misses after a change in the losses, never falls back
elsewhere; processes and versions share it, and it never ends a program.
"""

from __future__ import annotations

import ast
import importlib
import math
import os
import shutil
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pytest

import dualgap
from dualgap.runtime import kernel_cache
from dualgap.runtime.errors import KernelCacheWarning
from dualgap.runtime.kernel_cache import DAY, UNUSED_DAYS, Removed

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


def start(package: Path, cache: Path | str, program: str = PROGRAM) -> subprocess.Popen[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "DUALGAP", "XDG"))}
    env |= {"PYTHONPATH": str(package.parent), "DUALGAP_CACHE": str(cache)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer_of(process: subprocess.Popen[str], *, warned: bool = False) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err.count("KernelCacheWarning") == warned, err
    return out.strip()


def run(package: Path, cache: Path | str, program: str = PROGRAM, *, warned: bool = False) -> str:
    return answer_of(start(package, cache, program), warned=warned)


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


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
    assert not [file for file in files_in(package) if file.suffix not in (".py", ".pyc", ".typed")]


@pytest.mark.slow
def test_a_hit_does_without_what_only_compiling_needs(package: Path, tmp_path: Path) -> None:
    """What Numba imports and registers before it compiles takes longer than a small fit."""
    looks = PROGRAM + '    import sys; print("numba.cpython.unicode" in sys.modules)\n'
    assert run(package, tmp_path / "cache", looks) == "3.0 miss\nTrue"
    assert run(package, tmp_path / "cache", looks) == "3.0 hit\nFalse"


@pytest.mark.slow
def test_a_change_elsewhere_keeps_the_cache(package: Path, tmp_path: Path) -> None:
    assert run(package, tmp_path / "cache") == "3.0 miss"
    (package / "training" / "callbacks.py").write_text(
        (package / "training" / "callbacks.py").read_text() + "\n# a remark\n"
    )
    assert run(package, tmp_path / "cache") == "3.0 hit"


@pytest.mark.slow
def test_where_no_folder_can_be_written_one_warning_says_so(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    two_kernels = """
        import numpy as np
        from dualgap.runtime.sums import _summed, add_vector
        _summed(np.ones(3), False), add_vector(np.ones(3), np.ones(3), np.ones(3))
        print(len(_summed.stats.cache_misses), len(add_vector.stats.cache_misses))
    """
    cache = tmp_path / "file" / "cache"
    process = start(package, cache, two_kernels)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "1 1\n"), err
    assert err.count("KernelCacheWarning") == 1, err
    assert f"cannot be stored in {cache} (Not a directory)" in err
    assert "let DUALGAP_CACHE name a folder" in err
    assert run(package, cache, "from dualgap import fit") == ""  # nothing compiled, nothing said


# A read-only file system, also to root: whatever would change the cache is refused.
READ_ONLY = """
    import os, sys
    def refuse(event, arguments):
        path, *rest = arguments if arguments else ("",)
        if not str(path).startswith({cache!r}):
            return
        writes = event == "open" and ("w" in (rest[0] or "") or rest[1] & (os.O_WRONLY | os.O_RDWR))
        if writes or event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.utime"):
            raise PermissionError(30, "Read-only file system", str(path))
    sys.addaudithook(refuse)
"""


@pytest.mark.slow
def test_a_read_only_cache_is_used_and_what_is_missing_in_it_is_compiled(
    package: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    assert run(package, cache) == "3.0 miss"
    for file in files_in(cache):
        os.utime(file, (0, time.time() - 2 * DAY))  # so that it is to be touched
    before = {file: file.stat().st_mtime_ns for file in files_in(cache)}
    locked = textwrap.dedent(READ_ONLY.format(cache=str(cache)))
    assert run(package, cache, locked + textwrap.dedent(PROGRAM)) == "3.0 hit"
    other = PROGRAM.replace("Hinge", "SquaredHinge")
    assert run(package, cache, locked + textwrap.dedent(other), warned=True) == "3.0 miss"
    assert {file: file.stat().st_mtime_ns for file in files_in(cache)} == before


@pytest.mark.slow
def test_processes_may_compile_into_one_cache_at_once(package: Path, tmp_path: Path) -> None:
    """The same kernel for the same and for other arguments: Numba's own cache can mix them up."""
    cache, go = tmp_path / "cache", tmp_path / "go"
    hinge, logistic = PROGRAM, PROGRAM.replace("Hinge", "Logistic")
    values = [(hinge, 3.0), (hinge, 3.0), (logistic, 3.0 * math.log(2.0))]
    processes = [start(package, cache, together(program, go)) for program, _ in values]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    go.touch()
    for process, (_, value) in zip(processes, values, strict=True):
        assert answer_of(process) == f"{value} miss"
    for program, value in values[1:]:
        assert run(package, cache, program) == f"{value} hit"


def together(program: str, go: Path) -> str:
    """The program, which waits for a file before it calls its kernel."""
    waits = f"""
    import time
    from pathlib import Path
    print("ready", flush=True)
    while not Path({str(go)!r}).exists():
        time.sleep(0.001)
    value, _ ="""
    changed = program.replace("\n    value, _ =", waits)
    assert changed != program
    return changed


@pytest.mark.slow
def test_versions_share_a_cache(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    newer = Path(shutil.copytree(package, tmp_path / "newer" / "dualgap"))
    (newer / "_version.py").write_text('__version__ = "9.9.9"\n')
    losses = newer / "core" / "losses" / "margin.py"
    text = losses.read_text()
    changed = text.replace(
        "return short if short > 0.0 else 0.0", "return 2.0 * short if short > 0.0 else 0.0"
    )
    assert changed != text
    losses.write_text(changed)
    assert run(package, cache) == "3.0 miss"
    assert run(newer, cache) == "6.0 miss"
    assert run(package, cache) == "3.0 hit"
    assert run(newer, cache) == "6.0 hit"
    found = kernel_cache.folders(cache)
    assert {folder.dualgap for folder in found} == {dualgap.__version__, "9.9.9"}
    assert all(folder.kernels > 0 for folder in found)


@pytest.mark.slow
def test_a_damaged_file_counts_as_missing(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run(package, cache) == "3.0 miss"
    for file in files_in(cache):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    assert run(package, cache) == "3.0 miss"
    for file in files_in(cache):
        file.write_bytes(file.read_bytes()[:100])
    assert run(package, cache) == "3.0 miss"
    assert run(package, cache) == "3.0 hit"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of three kernels of two versions, one of them long unused, and things that are not ours."""
    monkeypatch.setattr(kernel_cache, "_warned", False)
    monkeypatch.setattr(kernel_cache, "_pruned", set())
    root = tmp_path / "cache"
    for name, age in {
        "dualgap-0.1.0_numba-0.61.0_py311/a.b-0123456789abcdef-0123456789abcdef.kernel": UNUSED_DAYS + 1,
        "dualgap-0.2.0_numba-0.68.1_py312/a.b-0123456789abcdef-0123456789abcdef.kernel": UNUSED_DAYS - 1,
        "dualgap-0.2.0_numba-0.68.1_py312/a.c-0123456789abcdef-0123456789abcdef.kernel": 0,
        "dualgap-0.2.0_numba-0.68.1_py312/.0123456789abcdef.kernel-tmp": 2,  # of a process that was killed
        "dualgap-0.2.0_numba-0.68.1_py312/notes.kernel": 1000,
        "dualgap-0.2.0/a.b-0123456789abcdef-0123456789abcdef.kernel": 1000,
        "notes.txt": 1000,
    }.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(10))
        os.utime(file, (0, time.time() - age * DAY))
    elsewhere = tmp_path / "dualgap-0.1.0_numba-0.61.0_py311"
    shutil.copytree(root / elsewhere.name, elsewhere)
    (root / "dualgap-0.3.0_numba-0.61.0_py311").symlink_to(elsewhere)
    return root


FOREIGN = {
    "dualgap-0.2.0_numba-0.68.1_py312/notes.kernel",
    "dualgap-0.2.0/a.b-0123456789abcdef-0123456789abcdef.kernel",
    "notes.txt",
}


def left_in(root: Path) -> set[str]:
    elsewhere = root / "dualgap-0.3.0_numba-0.61.0_py311"
    assert len(list(elsewhere.iterdir())) == 1  # behind a link
    return {str(path.relative_to(root)) for path in files_in(root) if elsewhere not in path.parents}


def test_storing_removes_what_is_long_unused_and_nothing_else(root: Path) -> None:
    new = root / "dualgap-0.2.0_numba-0.68.1_py312" / "a.d-0123456789abcdef-0123456789abcdef.kernel"
    kernel_cache.store(new, b"code")
    kept = {f"dualgap-0.2.0_numba-0.68.1_py312/a.{k}-0123456789abcdef-0123456789abcdef.kernel" for k in "bcd"}
    assert left_in(root) == FOREIGN | kept
    assert not (root / "dualgap-0.1.0_numba-0.61.0_py311").exists()


def test_what_is_used_is_kept(root: Path) -> None:
    old = root / "dualgap-0.1.0_numba-0.61.0_py311" / "a.b-0123456789abcdef-0123456789abcdef.kernel"
    kernel_cache.store(old, b"code")
    os.utime(old, (0, time.time() - 2 * UNUSED_DAYS * DAY))
    assert kernel_cache.load(old) == b"code"
    assert kernel_cache.prune(root).kernels == 0
    assert kernel_cache.load(old) == b"code"
    just = time.time() - DAY / 2
    os.utime(old, (0, just))
    kernel_cache.load(old)
    assert old.stat().st_mtime == pytest.approx(just)  # touched once a day at most


def test_clearing_removes_what_is_ours_and_nothing_else(root: Path) -> None:
    folders = kernel_cache.folders(root)
    assert [(f.dualgap, f.numba, f.python, f.kernels, f.bytes) for f in folders] == [
        ("0.2.0", "0.68.1", "312", 2, 20),
        ("0.1.0", "0.61.0", "311", 1, 10),
    ]
    assert kernel_cache.clear(root) == Removed(3, 40)
    assert left_in(root) == FOREIGN
    assert kernel_cache.clear(root) == Removed(0, 0)
    assert kernel_cache.folders(root / "missing") == []


def test_a_full_disk_is_a_warning_and_leaves_nothing_behind(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = left_in(root)

    def full(path: Path, content: bytes) -> None:
        with path.open("wb") as stream:
            stream.write(content[:2])
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    file = root / "dualgap-0.2.0_numba-0.68.1_py312" / "a.d-0123456789abcdef-0123456789abcdef.kernel"
    with pytest.warns(KernelCacheWarning, match="No space left on device"):
        kernel_cache.store(file, b"code")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel_cache.store(file, b"code")  # once a process
    assert left_in(root) == before


def test_a_cache_that_is_cleared_while_a_kernel_is_stored(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_bytes

    def removed_once(path: Path, content: bytes) -> int:
        monkeypatch.setattr(Path, "write_bytes", write)
        path.parent.rmdir()
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", removed_once)
    file = root / "dualgap-0.3.1_numba-0.68.1_py312" / "a.d-0123456789abcdef-0123456789abcdef.kernel"
    kernel_cache.store(file, b"code")
    assert kernel_cache.load(file) == b"code"


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dualgap.runtime.kernel_cache import cache_root

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
