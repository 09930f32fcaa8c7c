"""``dualgap cache``, and what commands say of a cache that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import run, write_rows

FOLDER = "dualgap-0.1.0_numba-0.61.0_py311"
FILE = "a.b-0123456789abcdef-0123456789abcdef.kernel"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with one kernel, and a file that is not ours."""
    root = tmp_path / "cache"
    (root / FOLDER).mkdir(parents=True)
    (root / FOLDER / FILE).write_bytes(bytes(2_000))
    (root / "notes.txt").write_text("mine")
    return root


def test_info_tells_where_it_is_and_what_is_in_it(cache: Path) -> None:
    done = run("cache", "info", "--json", DUALGAP_CACHE=str(cache))
    (folder,) = done.json["folders"]
    assert (done.code, done.err) == (0, "")
    assert (done.json["cache"], done.json["writable"]) == (str(cache), True)
    assert (done.json["kernels"], done.json["bytes"]) == (1, 2_000)
    assert (folder["dualgap"], folder["numba"], folder["python"]) == ("0.1.0", "0.61.0", "311")
    told = run("cache", "info", DUALGAP_CACHE=str(cache)).out
    assert f"cache: {cache}\n  1 kernel, 2.0 kB\n" in told
    assert "dualgap 0.1.0, Numba 0.61.0, Python 3.11: 1 kernel, 2.0 kB, used today" in told
    assert run("cache", "info", "--quiet", DUALGAP_CACHE=str(cache)) == (0, "", "")


def test_info_of_a_folder_that_is_missing_or_cannot_be_made(tmp_path: Path) -> None:
    missing = tmp_path / "some" / "where"
    done = run("cache", "info", "--json", DUALGAP_CACHE=str(missing))
    assert (done.json["writable"], done.json["kernels"]) == (True, 0)
    assert not missing.parent.exists()
    (tmp_path / "file").write_text("in the way")
    there = tmp_path / "file" / "cache"
    assert run("cache", "info", "--json", DUALGAP_CACHE=str(there)).json["writable"] is False
    assert "cannot be written to" in run("cache", "info", DUALGAP_CACHE=str(there)).out


def test_clear_removes_what_is_ours(cache: Path) -> None:
    told = run("cache", "clear", DUALGAP_CACHE=str(cache))
    assert told == (0, f"removed 1 kernel, 2.0 kB, from {cache}\n", "")
    assert [path.name for path in cache.rglob("*")] == ["notes.txt"]
    done = run("cache", "clear", "--json", DUALGAP_CACHE=str(cache))
    assert done.json == {"cache": str(cache), "kernels": 0, "bytes": 0}


def test_cache_needs_no_compiler(cache: Path) -> None:
    """Nothing heavy is imported: it is asked when something is wrong with the compiler."""
    import subprocess
    import sys

    program = (
        "import sys; from dualgap.cli import main\ntry: main(['cache', 'info'])\nexcept SystemExit: pass\n"
    )
    program += "print([name for name in ('numba', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_one_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    there = tmp_path / "file" / "cache"
    rows = write_rows(tmp_path / "rows.svm")
    done = run("train", rows, "-o", tmp_path / "model", "--quiet", DUALGAP_CACHE=str(there))
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"dualgap: note: compiled kernels cannot be stored in {there} (")
    assert done.err.count("\n") == 1
