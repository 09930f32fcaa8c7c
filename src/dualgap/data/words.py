"""Words as class labels: float64 codes stand for them, positions among their names.

Whatever reads rows hands on codes and ``label_names``, sorted; numbers as labels have no names and stand for
themselves. So feeds, stores and sources go on with numbers, and only what people see holds the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..runtime.arrays import Floats
from ..runtime.errors import InputError

Names = tuple[str, ...] | None  # what codes stand for; None: labels are numbers

LONGEST = 200  # characters of a word
MOST_WORDS = 100_000  # different ones in a file
COMMA = ","  # between the labels of a row that may have several: their set goes by one name
NO_LABELS = COMMA  # the name of the empty set
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # and halves of surrogate pairs


def are_words(y: Any) -> bool:
    """Whether an array holds words, and nothing else."""
    if y.dtype == object:
        return y.size > 0 and all(isinstance(label, str) for label in y.flat)
    return bool(y.dtype.kind in "UT")


def fault_of(word: str) -> str | None:
    """What makes a word unfit for a label; None if nothing does."""
    if not word:
        return "is empty"
    longest = max(map(len, word.split(COMMA)))
    if longest > LONGEST:
        return f"has {longest:,} characters, and a label has {LONGEST} at most"
    if _CONTROL.search(word):
        return "has a control character or half a character in it"
    return None


def shown_word(word: str) -> str:
    """A word for messages, shortened."""
    return repr(word if len(word) <= 40 else word[:37] + "...")


def check_words(words: Iterable[str], name: str) -> None:
    """Refuse what is unfit for a label; ``name`` says where the words come from."""
    for word in words:
        fault = fault_of(word)
        if fault is not None:
            raise InputError(f"{name}: label {shown_word(word)} {fault}")


def coded(y: Any, name: str) -> tuple[Floats, Names]:
    """Labels as float64 codes, and their names if they are words. ``name`` says where they come from."""
    y = np.asarray(y)
    if not are_words(y):
        return np.asarray(y, dtype=np.float64), None
    words = y.tolist()
    names = tuple(sorted(set(words)))
    check_words(names, name)
    places = {word: float(place) for place, word in enumerate(names)}
    return np.array([places[word] for word in words]), names


def decoded(codes: Any, names: Names) -> Any:
    """The labels that codes stand for."""
    return codes if names is None else np.array(names, dtype=str)[codes.astype(np.intp)]


class Vocabulary:
    """The words of all tables of a file, or of all chunks of a feed, with one code for each.

    Tables have codes of their own; ``recode`` makes them alike in the order in which words come, and
    ``names`` and ``final`` put them in their final order once all have come.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._words: bool | None = None  # None: no labels have come yet

    def recode(self, codes: Floats, names: Names, where: str) -> Floats:
        """Codes that mean the same in all tables; numbers stay what they are. ``where`` is for messages."""
        if not codes.size:
            return codes
        if self._words is None:
            self._words = names is not None
        if self._words != (names is not None):
            raise InputError(
                f"{where}: some labels are words and others are numbers; make all of them the one or "
                "the other"
            )
        if names is None:
            return codes
        places = [self._places.setdefault(word, len(self._places)) for word in names]
        if len(self._places) > MOST_WORDS:
            raise InputError(
                f"{where}: more than {MOST_WORDS:,} different words as labels; each would be a class of "
                "its own"
            )
        return np.array(places, dtype=np.float64)[codes.astype(np.intp)]

    @property
    def names(self) -> Names:
        """All words, sorted; None if labels are numbers."""
        return tuple(sorted(self._places)) if self._words else None

    def final(self, codes: Floats) -> Floats:
        """The positions among ``names`` of labels that ``recode`` has numbered."""
        if not self._words:
            return codes
        order = np.argsort(np.array(list(self._places), dtype=object), kind="stable")
        position = np.empty(order.size)
        position[order] = np.arange(order.size)
        return np.asarray(position[codes.astype(np.intp)])
