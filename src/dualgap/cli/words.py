"""What the library says, in the words of the command line: options for arguments."""

from __future__ import annotations

import re

# Arguments of ``fit`` that are options of ``train`` under the same name.
_ARGUMENTS = (
    *("loss", "C", "lam", "solver", "tol", "atol", "target", "bias", "rho", "seed", "threads", "stall"),
    *("max_epochs", "max_visits", "time_limit", "record_every", "record_start", "validation", "patience"),
    *("metric", "task", "scale", "checkpoint_every", "checkpoint", "resume", "memory_budget"),
    *("hash_bits", "expand", "n_features"),
)
_VALUE = r"(?:\w*Path\('(?P<path>[^']*)'\)|'(?P<word>[^']*)'|(?P<plain>[^\s;,:()]+))"
_GIVEN = re.compile(rf"(?<![\w-])(?P<name>{'|'.join(_ARGUMENTS)})={_VALUE}")
_TWICE = re.compile(r"(--[a-z-]+) \(\1\)")  # a sentence that names both the argument and the option
_NAMED = re.compile(rf"(?<![\w-])(?P<name>{'|'.join(name for name in _ARGUMENTS if '_' in name)})\b")


def in_options(text: str) -> str:
    """A sentence of the library, with the options of the command for its arguments."""
    text = text.replace("output='last'", "--keep last").replace("None (never)", "none (never)")
    text = text.replace("in_memory=False", "--from-disk").replace("in_memory=True", "--in-memory")
    text = text.replace(" (in Python: from its point, warm=)", "")
    text = _GIVEN.sub(_option, text)
    text = _NAMED.sub(lambda found: _dashed(found["name"]), text)
    return _TWICE.sub(r"\1", text)


def _option(found: re.Match[str]) -> str:
    value = found["path"] or found["word"] or found["plain"] or "''"
    quoted = f"'{value}'" if " " in value else value
    return f"{_dashed(found['name'])} {quoted}"


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"
