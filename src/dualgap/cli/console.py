"""What commands share for output: results go to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import click

from ..runtime.compiling import announced_to
from ..training.progress import COMPILING

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and nothing else."
)

quiet_option = click.option("--quiet", is_flag=True, help="Print nothing but errors.")


class OutputError(Exception):
    """Stdout cannot be written to. It is no OSError, as those are about other files."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: cannot be written: {error.strerror or error}")
        self.closed = isinstance(error, BrokenPipeError)  # whoever was reading has had enough


class _Guarded:
    """A text stream whose errors are OutputErrors."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise OutputError(error) from None

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise OutputError(error) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def guarded_stdout() -> Iterator[None]:
    """Errors of stdout raise OutputError, and leave nothing buffered that fails at exit."""
    before = sys.stdout
    stream: Any = before
    if stream is None:  # closed by whoever started the program
        stream = Path(os.devnull).open("w")  # noqa: SIM115  (until the end)
    sys.stdout = cast(TextIO, _Guarded(stream))
    try:
        yield
        sys.stdout.flush()
    except OutputError:
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
        raise
    finally:
        sys.stdout = before


def emit(values: dict[str, Any]) -> None:
    """Print one JSON object on stdout; infinities and NaN become null."""
    click.echo(json.dumps(finite(values), allow_nan=False))


def note(text: str) -> None:
    """Print a remark on stderr."""
    click.echo(f"dualgap: note: {text}", err=True)


def said(text: str) -> None:
    """Print the first part of a report at once; also on stderr, where that is a terminal and stdout is not.

    A stdout that cannot be written to is no reason to give up now: it is noticed when the report is complete.
    """
    with contextlib.suppress(OutputError):
        click.echo(text)
    if sys.stderr.isatty() and not sys.stdout.isatty():
        click.echo(text, err=True)


def complain(message: str) -> int:
    """Print an error in one line; returns the exit code for it."""
    with contextlib.suppress(OSError):  # the exit code still tells
        click.echo(f"dualgap: error: {' '.join(message.split())}", err=True)
    return 2


def warn(message: str) -> None:
    """Print a warning in one line."""
    with contextlib.suppress(OSError):
        click.echo(f"dualgap: warning: {' '.join(message.split())}", err=True)


def headline(text: str, good: bool = True) -> None:
    """Print the sentence that says how it went."""
    click.secho(text, fg="green" if good else "yellow", bold=True)


def table(rows: list[tuple[str, str, str]]) -> None:
    """Print names, numbers aligned to the right, and their meanings."""
    names, numbers = (max(len(row[k]) for row in rows) for k in (0, 1))
    for name, number, meaning in rows:
        click.echo(f"  {name:<{names}}  {number:>{numbers}}  {meaning}".rstrip())


def printable(text: str) -> str:
    """A text from a file of unknown origin, without what would tell a terminal to do something."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def columns(names: list[str], rows: list[list[str]]) -> None:
    """Print columns aligned to the right, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in [names, *rows]:
        cells = [
            f"{cell:<{width}}" if k == 0 else f"{cell:>{width}}"
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo(f"  {'  '.join(cells)}".rstrip())


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a table with wrapped cells; as wide as needed where stdout is no terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    found = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(columns):
        found.add_column(column, no_wrap=k == 0)  # names are for typing: never cut
    for row in rows:
        found.add_row(*map(Text, row))
    Console(width=None if sys.stdout.isatty() else 200).print(found)


def counted(number: int, thing: str) -> str:
    """A number with its noun: ``1 row``, ``32,561 rows``."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def size_of(bytes_: int) -> str:
    """A file size for people."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_ >= factor:
            return f"{bytes_ / factor:.1f} {unit}"
    return f"{bytes_} bytes"


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


class FloatOrInf(click.ParamType):  # type: ignore[type-arg]  # as for Size
    """A number, or inf spelt out: one that is beyond float64 does not become inf."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it as Python does."""
        found: float = click.FLOAT.convert(value, param, ctx)
        spelt = re.fullmatch(r"[+-]?inf(inity)?", str(value).strip().lower())
        if math.isinf(found) and spelt is None:
            self.fail(f"{value} is beyond the largest number, 1.8e308; inf stands for infinity", param, ctx)
        return found


class Size(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions
    """A number of bytes: 500MB, 2GB, 1.5GiB, or plain digits."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes that a text stands for."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]i?)?b?", value.strip().lower())
        if found is None:
            self.fail(f"{value!r} is no size; write it as 500MB, 2GB or a number of bytes", param, ctx)
        return int(float(found[1]) * _UNITS[found[2] or ""])


class Spinner:
    """A line on stderr while something takes time; silent where stderr is no terminal."""

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown and sys.stderr.isatty()
        self._status: Any = None
        self._text = ""
        self._listening = contextlib.ExitStack()

    def say(self, text: str) -> None:
        """Show this text from now on."""
        if not self._shown:
            return
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status("", spinner="dots")
            self._status.start()
            self._listening.enter_context(announced_to(self._compiling))
        self._text = text
        self._status.update(text)

    def _compiling(self) -> None:
        if self._status is not None:
            self._status.update(f"{self._text}: {COMPILING}")

    def stop(self) -> None:
        """Remove the line."""
        self._listening.close()
        if self._status is not None:
            self._status.stop()
            self._status = None

    def __enter__(self) -> Spinner:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def finite(value: Any) -> Any:
    """The same value with None for infinities and NaN."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
