"""Bad input: one line that names the thing, the value and the remedy; exit code 2; nothing written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import dualgap
from dualgap.runtime.errors import InputError
from dualgap.solvers import SOLVERS, can_train
from support.commands import Forks, forks_fixture, write_rows  # noqa: F401

CASES: list[tuple[str | None, str, str]] = [
    # content of DATA (None: good rows), further arguments of train, what the error says
    (
        "1 1:nan\n-1 1:1\n",
        "",
        "line 1, column 3: value 'nan' of index 1 is not finite; fill in missing values",
    ),
    ("1 1:1\n-1 1:inf\n", "", "line 2, column 4: value 'inf' of index 1 is not finite"),
    ("nan 1:1\n", "", "line 1, column 1: label 'nan' is not finite"),
    ("inf 1:1\n", "--loss squared", "line 1, column 1: label 'inf' is not finite"),
    ("1 1:1\n1 1:2\n", "", "all rows have the label 1; a classifier needs rows of two classes"),
    ("3 1:1\n1 1:2\n2 1:3\n", "--positive 4", "no row has the label 4 of --positive; there are: 1, 2, 3"),
    ("3 1:1\n1 1:2\n2 1:3\n", "--positive cat", "no row has the label cat of --positive; there are: 1, 2, 3"),
    (None, "--positive 1 --loss huber", "--positive is for classes, and the huber loss is for regression"),
    ("", "", "the file is empty"),
    ("# only words\n", "", "no rows"),
    ("1\n-1\n", "", "no row has any feature"),
    (
        "1 0:1\n-1 1:1\n",
        "--zero-based no",
        "line 1, column 3: index 0 where indices count from 1; pass --zero-based yes",
    ),
    (None, "--n-features 11", "index 12 is beyond the 11 features; raise --n-features"),
    (None, "--n-features 0", "--n-features 0 must be at least 1"),
    (
        "1 1:1\n-1 70000000000000:1\n",
        "",
        "line 2, column 4: index 70000000000000 means 70000000000000 columns, which take about",
    ),
    ("1,2 1:1\n", "", "line 1, column 1: '1,2' is several labels; a row must have one"),
    (
        "5.1,3.5,1.4,0.2,1\n4.9,3.0,1.4,0.2,0\n",
        "",
        "line 1, column 1: this looks like CSV (commas) and not like svmlight",
    ),
    (
        "length,width,class\n1,2,3\n",
        "",
        "dualgap.files.write_svmlight for instance, or give the arrays to",
    ),
    ("5.1;3.5;1\n", "", "this looks like CSV (semicolons)"),
    ("1\t5.1\n0\t3\n", "", "this looks like TSV (tabs)"),
    ("1 5.1 3.5\n", "", "this looks like a table (blanks)"),
    ("1 5.1\n", "", "line 1, column 3: '5.1' should be index:value"),
    ("1 2:1 2:3\n", "", "line 1, column 7: index 2 occurs twice"),
    ("\x00\x01\x02", "", "these are binary data (bytes of 0), and not svmlight text"),
    (None, "--C 0", "--C 0.0 must be a positive finite number, or inf for the hard margin"),
    (None, "--C 1e400", "1e400 is beyond the largest number, 1.8e308; inf stands for infinity"),
    (None, "--C -inf", "--C -inf must be a positive finite number"),
    (None, "--C -1", "--C -1.0 must be a positive finite number"),
    (None, "--C nan", "--C nan must be a positive finite number"),
    (None, "--lam inf", "--lam inf must be a non-negative finite number"),
    (None, "--C 1 --lam 1", "both --C 1.0 and --lam 1.0 are given"),
    (None, "--tol -1", "--tol -1.0 must be a non-negative finite number"),
    (None, "--max-epochs 0", "--max-epochs 0.0 must be a positive finite number"),
    (None, "--time-limit nan", "--time-limit nan must be a positive finite number"),
    (None, "--threads 0", "--threads 0 must be at least 1"),
    (None, "--record-every 0", "--record-every 0 must be a positive number of row visits"),
    (None, "--seed -1", "Invalid value for '--seed'"),
    (None, "--loss hing", "unknown loss 'hing'; did you mean 'hinge'?"),
    (
        None,
        "--loss poisson",
        "the loss 'poisson' is not offered; there are: absolute, crammer-singer, epsilon-insensitive",
    ),
    (None, "--C 1e308", "--C 1e+308 is out of range"),
    (None, "--loss hinge:gamma=1", "loss 'hinge' has no parameter 'gamma'"),
    (None, "--loss huber:threshold=-1", "threshold=-1.0 must be a positive finite number"),
    (None, "--solver dcdd", "unknown solver 'dcdd'; did you mean 'dcd'?"),
    (
        None,
        "--solver dcd --option shrink=1",
        "solver 'dcd' has no option 'shrink'; did you mean 'shrinking'?",
    ),
    (None, "--option shrink=1", "no solver has an option 'shrink'; did you mean 'shrinking'?"),
    (None, "--option C=3", "no solver has an option 'C'"),
    (None, "--option shrinking", "--option 'shrinking' has no value; write it as --option shrinking=VALUE"),
    (None, "--solver dcd --option shrinking=perhaps", "must be of type bool: true or false"),
    (None, "--bias free-beer", "unknown bias 'free-beer'"),
    (None, "--bias augmented --rho 0", "--rho 0.0 must lie between 1e-100 and 1e100"),
    (None, "--rho 2", "--rho 2 is for --bias augmented only"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("content", "arguments", "complaint"), CASES)
def test_train_refuses(
    tmp_path: Path, forks: Forks, content: str | None, arguments: str, complaint: str
) -> None:
    data = tmp_path / "rows.svm"
    if content is None:
        write_rows(data)
    else:
        data.write_text(content)
    done = forks("train", data, "-o", tmp_path / "m", "--trace", tmp_path / "t.jsonl", *arguments.split())
    assert complaint in done.error
    assert [path.name for path in tmp_path.iterdir()] == ["rows.svm"]


def test_a_solver_that_cannot_handle_the_loss(tmp_path: Path, forks: Forks) -> None:
    picky = next(name for name, cls in SOLVERS.items() if not can_train(cls, "squared"))
    done = forks("train", "nowhere.svm", "-o", tmp_path / "m", "--solver", picky, "--loss", "squared")
    assert f"solver '{picky}' cannot train with the loss 'squared'; these can: dcd" in done.error


@pytest.mark.parametrize("option", ["-o", "--trace"])
def test_a_folder_that_does_not_exist_is_noticed_before_the_data_are_read(
    tmp_path: Path, forks: Forks, option: str
) -> None:
    done = forks("train", tmp_path / "nowhere.svm", "-o", tmp_path / "m", option, tmp_path / "no" / "file")
    assert f"the folder {tmp_path / 'no'} does not exist; make it first" in done.error
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def place(tmp_path: Path, model: Path) -> Path:
    """A folder of inputs, one of each kind, with other names for them beside it."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("rows.svm", "more.svm"):
        write_rows(folder / name)
    (folder / "weights").write_text("1\n" * 200)
    (folder / "names").write_text("".join(f"c{k}\n" for k in range(12)))
    (folder / "m").write_bytes(model.read_bytes())
    (tmp_path / "there").symlink_to(folder)
    return folder


TRAIN = "train rows.svm -o new --validation more.svm --quiet"
CONVERT = "convert rows.svm new.arrow --weights weights --names names"
CLASHES = [  # a command, one of its outputs, and a file that it reads, or writes already
    (f"{TRAIN} -o", "rows.svm", "DATA"),
    (f"{TRAIN} -o", "more.svm", "the file of --validation"),
    (f"{TRAIN} --trace", "rows.svm", "DATA"),
    (f"{TRAIN} --trace", "more.svm", "the file of --validation"),
    (f"{TRAIN} --trace", "new", "MODEL"),
    ("predict m rows.svm -o", "rows.svm", "DATA"),
    ("predict m rows.svm -o", "m", "MODEL"),
    ("convert", "rows.svm", "IN"),
    (CONVERT, "weights", "WEIGHTS"),
    (CONVERT, "names", "NAMES"),
]
NAMES: dict[str, Any] = {
    "plain": lambda place, name: name,
    "relative": lambda place, name: f"../{place.name}/./{name}",
    "absolute": lambda place, name: place / name,
    "through a folder": lambda place, name: place.parent / "there" / name,
    "symbolic link": lambda place, name: _linked(place / name, Path.symlink_to),
    "hard link": lambda place, name: _linked(place / name, Path.hardlink_to),
}


def _linked(file: Path, link: Any) -> Path:
    other = file.with_name("link.svm" if file.name != "new" else "new-link")
    link(other, file)
    return other


@pytest.mark.parametrize(
    ("command", "name", "clash", "spelling"),
    [  # what does not exist has no hard links
        (*case, spelling)
        for case in CLASHES
        for spelling in NAMES
        if (case[1], spelling) != ("new", "hard link")
    ],
)
def test_no_output_overwrites_an_input_or_another_output(
    place: Path, forks: Forks, command: str, name: str, clash: str, spelling: str
) -> None:
    where = Path(NAMES[spelling](place, name))
    words = command.split()
    if words[0] == "convert":
        words[1:3] = ["rows.svm", where]
    else:
        words.append(where)
    before = {file.name: file.read_bytes() for file in place.iterdir() if file.exists()}
    done = forks(*words, cwd=place)
    assert f"{where}: writing there would overwrite {clash}; choose another name" in done.error
    assert {file.name: file.read_bytes() for file in place.iterdir() if file.exists()} == before


@pytest.mark.slow
def test_the_standard_streams_are_files_too(place: Path, forks: Forks) -> None:
    def shell(line: str) -> str:
        command = f"exec {sys.executable} -m dualgap.cli {line}"
        done = subprocess.run(command, shell=True, cwd=place, capture_output=True, text=True)
        assert done.returncode == 2
        return done.stderr

    before = (place / "rows.svm").read_text()
    found = shell("predict m - --zero-based no -o rows.svm < rows.svm")
    assert found == "dualgap: error: rows.svm: writing there would overwrite DATA; choose another name\n"
    found = shell("predict m rows.svm >> rows.svm")
    assert "rows.svm: the standard output goes there and would spoil DATA; redirect it elsewhere\n" in found
    assert (place / "rows.svm").read_text() == before
    only = "only `dualgap predict` writes to the standard output; give the name of a file"
    assert only in forks("train", "rows.svm", "-o", "-", cwd=place).error
    assert forks("predict", "m", "rows.svm", "-o", "-", cwd=place) == forks(
        "predict", "m", "rows.svm", cwd=place
    )
    assert not (place / "-").exists()


@pytest.mark.slow
def test_nothing_is_lost_in_dev_null(place: Path, forks: Forks) -> None:
    done = forks(*TRAIN.split(), "-o", "/dev/null", "--trace", "/dev/null", cwd=place)
    assert done == (0, "", "")
    assert Path("/dev/null").is_char_device()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    folder = tmp_path_factory.mktemp("model")
    done = forks("train", write_rows(folder / "rows.svm"), "-o", folder / "m", "--quiet")
    assert done == (0, "", "")
    return folder / "m"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "evaluate", "certify"])
@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (
            "1 1:1\n\n-1 13:1\n",
            "line 3, column 4: index 13 is beyond the 12 features; these are all that the model was trained "
            "on",
        ),
        ("1 0:1\n", "line 1, column 3: index 0 where indices count from 1"),
        ("1 1:x\n", "line 1, column 3: value 'x' of index 1 is not a number"),
    ],
)
def test_rows_that_do_not_fit_the_model(
    tmp_path: Path, forks: Forks, model: Path, command: str, content: str, complaint: str
) -> None:
    (tmp_path / "new.svm").write_text(content)
    assert complaint in forks(command, model, tmp_path / "new.svm").error


@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_labels_that_the_model_does_not_know(tmp_path: Path, forks: Forks, model: Path, command: str) -> None:
    (tmp_path / "new.svm").write_text("# heading\n1 1:1\n0 2:1\n")
    complaint = "line 3: label 0 is none of the model's, which are -1 and 1"
    assert complaint in forks(command, model, tmp_path / "new.svm").error


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "evaluate", "certify", "inspect"])
def test_files_that_are_no_model(tmp_path: Path, forks: Forks, model: Path, command: str) -> None:
    data = model.parent / "rows.svm"
    more = [] if command == "inspect" else [data]
    if command != "inspect":  # which looks at data just as well
        assert (
            "not a dualgap model; `dualgap train DATA -o MODEL` writes one"
            in forks(command, data, *more).error
        )
    assert "no such file" in forks(command, tmp_path / "nowhere", *more).error
    (tmp_path / "cut").write_bytes(model.read_bytes()[:-40])
    assert "damaged or cut short" in forks(command, tmp_path / "cut", *more).error
    newer(model, tmp_path / "newer")
    assert "written by a newer dualgap" in forks(command, tmp_path / "newer", *more).error


def newer(model: Path, copy: Path) -> None:
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            content: Any = old.read(name)
            if name == "header.json":
                content = json.dumps({**json.loads(content), "version": 99})
            new.writestr(name, content)


def test_a_model_where_data_belong(forks: Forks, model: Path) -> None:
    assert "this is a dualgap model, and not svmlight text" in forks("predict", model, model).error


def test_predict_writes_nothing_where_it_cannot(tmp_path: Path, forks: Forks, model: Path) -> None:
    data = model.parent / "rows.svm"
    assert "does not exist; make it first" in forks("predict", model, data, "-o", tmp_path / "no" / "p").error
    assert "is a folder" in forks("predict", model, data, "-o", tmp_path).error
    assert "would overwrite DATA" in forks("predict", model, data, "-o", data).error
    assert "would overwrite MODEL" in forks("predict", model, data, "-o", model).error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x" * 300, "loop", "loop/file"])
def test_names_that_cannot_be_followed(tmp_path: Path, forks: Forks, model: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("other")
    (tmp_path / "other").symlink_to("loop")
    data, odd = model.parent / "rows.svm", tmp_path / name
    for arguments in (
        ("train", odd, "-o", tmp_path / "m"),
        ("train", data, "-o", odd),
        ("train", data, "-o", tmp_path / "m", "--trace", odd),
        ("train", data, "-o", tmp_path / "m", "--validation", odd),
        ("predict", odd, data),
        ("predict", model, odd),
        ("predict", model, data, "-o", odd),
        ("evaluate", model, odd),
        ("certify", model, odd),
        ("inspect", odd),
        ("convert", odd, tmp_path / "a.arrow"),
        ("convert", data, tmp_path / "a.arrow", "--names", odd),
    ):
        error = forks(*arguments).error
        assert "File name too long" in error or "Too many levels of symbolic links" in error, arguments
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loop", "other"]
    with pytest.raises(InputError, match=r"File name too long|symbolic links"):
        dualgap.fit(odd)
    with pytest.raises(InputError, match=r"File name too long|symbolic links"):
        dualgap.one_vs_rest(odd)


def test_a_name_of_255_bytes_will_do(tmp_path: Path, forks: Forks, model: Path) -> None:
    name = tmp_path / ("\u4e00" * 85)
    assert forks("train", model.parent / "rows.svm", "-o", name, "--quiet").code == 0
    assert [path.name for path in tmp_path.iterdir()] == [name.name]


FULL: list[tuple[str, str]] = [
    ("predict MODEL DATA", ""),
    ("predict MODEL DATA --json", ""),
    ("evaluate MODEL DATA --json", ""),
    ("inspect MODEL", ""),
    ("solvers", ""),
    ("losses --json", ""),
    ("--help", ""),
    ("train DATA -o NEW", " (the model is saved as NEW)"),
    ("train DATA -o NEW --json", " (the model is saved as NEW)"),
]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(("words", "note"), FULL)
def test_a_full_standard_output_is_told_in_one_line(
    tmp_path: Path, model: Path, words: str, note: str
) -> None:
    names = {"MODEL": str(model), "DATA": str(model.parent / "rows.svm"), "NEW": str(tmp_path / "new")}
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "dualgap.cli", *(names.get(word, word) for word in words.split())]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    complaint = f"dualgap: error: standard output: cannot be written: No space left on device{note}\n"
    assert (done.returncode, done.stderr) == (2, complaint.replace("NEW", names["NEW"]))
    assert (tmp_path / "new").exists() == bool(note)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["solvers", "train --help", "predict MODEL DATA", "train DATA -o NEW"])
def test_a_reader_that_has_gone_ends_a_command_quietly(tmp_path: Path, model: Path, words: str) -> None:
    names = {"MODEL": str(model), "DATA": str(model.parent / "rows.svm"), "NEW": str(tmp_path / "new")}
    receiver, sender = os.pipe()
    os.close(receiver)
    command = [sys.executable, "-m", "dualgap.cli", *(names.get(word, word) for word in words.split())]
    done = subprocess.run(command, stdout=sender, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(sender)
    assert (done.returncode, done.stderr) == (141, "")
    assert (tmp_path / "new").exists() == ("NEW" in words)


@pytest.mark.slow
def test_without_a_standard_output_there_is_nothing_to_fail(model: Path) -> None:
    for words in (["solvers"], ["predict", str(model), str(model.parent / "rows.svm")]):
        shell = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "dualgap.cli", *words]
        done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_unexpected_errors_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    from dualgap import cli

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(cli.group, "invoke", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        cli.main(["solvers"])


@pytest.mark.slow
def test_a_program_that_calls_the_command_line_keeps_its_signals(capsys: pytest.CaptureFixture[str]) -> None:
    from dualgap import cli

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit):
        cli.main(["losses"])
    assert capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is before
