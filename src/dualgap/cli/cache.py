"""``dualgap cache``: show or clear the compiled kernels."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from .console import counted, emit, json_option, quiet_option, size_of

if TYPE_CHECKING:
    from ..runtime.kernel_cache import Folder


@click.group(short_help="Show or clear the compiled kernels.", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show or clear the folder in which compiled kernels are kept between runs.

    It is ~/.cache/dualgap, or dualgap in XDG_CACHE_HOME, or what the environment variable DUALGAP_CACHE
    names. `dualgap warmup` fills it. Kernels that nobody has used for 90 days are removed when others are
    stored.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command(short_help="Where it is, what is in it.")
@json_option
@quiet_option
def info(as_json: bool, quiet: bool) -> None:
    """Show where the compiled kernels are, whether more can be stored, and how many there are of which
    version.
    """
    from ..runtime.kernel_cache import cache_root, folders, writable

    root = cache_root()
    found, usable = folders(root), writable(root)
    kernels, size = sum(folder.kernels for folder in found), sum(folder.bytes for folder in found)
    if as_json:
        listed = [folder.as_dict() for folder in found]
        emit({"cache": str(root), "writable": usable, "kernels": kernels, "bytes": size, "folders": listed})
    elif not quiet:
        click.echo(f"cache: {root}{'' if usable else ' (cannot be written to)'}")
        click.echo(f"  {counted(kernels, 'kernel')}, {size_of(size)}")
        for folder in found:
            click.echo(f"  {_line(folder)}")


@command.command(short_help="Remove the compiled kernels.")
@json_option
@quiet_option
def clear(as_json: bool, quiet: bool) -> None:
    """Remove the compiled kernels of all versions, and nothing else. Later runs compile what they need."""
    from ..runtime.errors import InputError
    from ..runtime.kernel_cache import cache_root, folders
    from ..runtime.kernel_cache import clear as clear_cache

    root = cache_root()
    removed = clear_cache(root)
    left = sum(folder.kernels for folder in folders(root))
    if left:
        raise InputError(f"{root}: {counted(left, 'kernel')} cannot be removed; it is no folder of yours")
    if as_json:
        emit({"cache": str(root), "kernels": removed.kernels, "bytes": removed.bytes})
    elif not quiet:
        click.echo(f"removed {counted(removed.kernels, 'kernel')}, {size_of(removed.bytes)}, from {root}")


def _line(folder: Folder) -> str:
    days = int((time.time() - folder.used) // 86_400)
    used = "used today" if days < 1 else f"used {counted(days, 'day')} ago"
    python = f"{folder.python[0]}.{folder.python[1:]}"
    version = f"dualgap {folder.dualgap}, Numba {folder.numba}, Python {python}"
    return f"{version}: {counted(folder.kernels, 'kernel')}, {size_of(folder.bytes)}, {used}"
