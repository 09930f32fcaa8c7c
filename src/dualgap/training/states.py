"""What the states of runs are made of, and the checks that a state passes before compiled code sees it.

A state is data. Its classes are NamedTuples that say of each field what its numbers may be; `state_class`
puts a class into the registry, which is all that a file can be read into. Kernels check nothing: an index
beyond an array, a generator whose words are all 0 or a negative count would crash them or keep them busy for
ever. So `check_state` looks at every number of a run that is resumed, at its shapes and dtypes, and at what
must hold between its fields (`invariant`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import repeat
from numbers import Integral
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from ..runtime.arrays import Floats, Words
from ..runtime.counts import Counts

MOST = 2**62  # of any count: sums of two of them are still 64-bit numbers
LARGEST = 1e150  # of a finite number: its square is one, too


class Numbers(NamedTuple):
    """What the numbers of a field may be, one or an array of them."""

    low: float = -math.inf
    high: float = math.inf  # included
    whole: bool = False
    infinite: bool = False
    nan: bool = False
    rows: bool = False  # numbers of rows: below n
    words: bool = False  # of a random generator: 32 bits each, and not all of them 0
    fixed: bool = False  # the same throughout a run: that of a fresh state
    scalar: bool = False  # a single number, and no array
    shape: tuple[str | None, ...] | None = None  # of "n", "d", "K" and None (any); else that of a fresh state
    several: bool = False  # there are K times as many, in a last dimension, in a joint problem


WHOLE, FINITE = Numbers(0, MOST, whole=True, scalar=True), Numbers()
FLAG, TEXT = "flag", "text"

# Fields that are more than an int >= 0, a finite float, a bool, a str or an array of finite float64.
Position: TypeAlias = Annotated[int, Numbers(-1, MOST, whole=True)]  # -1: none yet
Signed: TypeAlias = Annotated[int, Numbers(-MOST, MOST, whole=True)]
Natural: TypeAlias = Annotated[int, Numbers(1, MOST, whole=True)]
NotNegative: TypeAlias = Annotated[float, Numbers(0.0)]
Positive: TypeAlias = Annotated[float, Numbers(5e-324)]
Share: TypeAlias = Annotated[float, Numbers(0.0, 1.0)]
Fixed: TypeAlias = Annotated[float, Numbers(fixed=True)]
FixedCount: TypeAlias = Annotated[int, Numbers(0, MOST, whole=True, fixed=True)]
Magnitude: TypeAlias = Annotated[float, Numbers(0.0, infinite=True)]
Extended: TypeAlias = Annotated[float, Numbers(infinite=True)]
Unknown: TypeAlias = Annotated[float, Numbers(infinite=True, nan=True)]  # NaN: none yet
Generator: TypeAlias = Annotated[Words, Numbers(whole=True, words=True)]
RowNumbers: TypeAlias = Annotated[Any, Numbers(0, whole=True, rows=True)]
Naturals: TypeAlias = Annotated[Any, Numbers(0, MOST, whole=True)]  # an array of counts, indices or bytes
Reals: TypeAlias = Annotated[Any, Numbers()]  # float64 or float32
ExtendedReals: TypeAlias = Annotated[Any, Numbers(infinite=True)]
GrowingReals: TypeAlias = Annotated[Floats, Numbers(shape=(None,))]  # as long as an invariant says
GrowingRowNumbers: TypeAlias = Annotated[Any, Numbers(0, whole=True, rows=True, shape=(None,))]
GrowingNaturals: TypeAlias = Annotated[Any, Numbers(0, MOST, whole=True, shape=(None,))]


class Extent(NamedTuple):
    """The problem that a state belongs to."""

    n: int
    d: int
    epoch_size: int
    weight: Floats | None  # of the rows; None where they are on disk
    several: tuple[int, ...] = ()  # the shape of a row's scores: (K,) in a joint problem

    def size_of(self, name: str) -> int:
        """The length of an array that has a number for each row ("n"), column ("d") or class ("K")."""
        return {"n": self.n, "d": self.d}[name] if name != "K" else self.several[0]

    def distinct_rows(self, rows: Any) -> bool:
        """Whether these are numbers of different rows, all of positive weight."""
        seen = np.zeros(self.n, dtype=bool)
        seen[rows] = True
        return int(seen.sum()) == rows.size and (self.weight is None or bool((self.weight[rows] > 0.0).all()))


C = TypeVar("C", bound=type)
Invariant: TypeAlias = Callable[[Any, Extent], Iterator[tuple[bool, str]]]

_CLASSES: dict[str, type] = {}
_INVARIANTS: dict[type, list[Invariant]] = {}


class FlawError(ValueError):
    """A part of a state that cannot be; the message says which, and what it must be."""


def state_class(cls: C) -> C:
    """Register a NamedTuple class as a part of states, so that ``load_state`` can read it.

    Also for what a callback keeps in its ``memory``. A field is an int >= 0, a finite float, a bool, a str,
    an array of finite float64, another such class, or as one of the aliases of this module says.
    """
    _CLASSES[name_of(cls)] = cls
    return cls


def invariant(cls: type) -> Callable[[Invariant], Invariant]:
    """Register what must hold between the fields of a class, as pairs of whether it does and what is wrong.

    They are asked for one by one, once every field by itself is known to be right.
    """

    def register(function: Invariant) -> Invariant:
        _INVARIANTS.setdefault(cls, []).append(function)
        return function

    return register


def name_of(cls: type) -> str:
    """The name under which files know a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def registered() -> dict[str, type]:
    """All classes that a state may be made of, by their names in files."""
    return dict(_CLASSES)


def check_state(value: Any, fresh: Any, extent: Extent | None, path: str = "") -> None:
    """Raise a `FlawError` unless a state can have come from a run of the solver that made the fresh one.

    Without a fresh state and an extent only the numbers by themselves are checked.
    """
    cls: Any = type(value)
    if fresh is not None and cls is not type(fresh):
        raise FlawError(f"{path or 'it'} is a {cls.__name__}, and must be a {type(fresh).__name__}")
    if _CLASSES.get(name_of(cls)) is not cls:
        raise FlawError(f"{path or 'it'} is a {cls.__name__}, of which no state is made")
    parts = zip(kinds_of(cls).items(), value, repeat(None) if fresh is None else fresh, strict=False)
    for (name, kind), part, reference in parts:
        _check_field(part, reference, kind, extent, _join(path, name))
    if extent is not None:
        for check in _INVARIANTS.get(type(value), []):
            for holds, wrong in check(value, extent):
                if not holds:
                    raise FlawError(_join(path, wrong))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def kinds_of(cls: type) -> dict[str, Any]:
    """What each field of a registered class may be: `Numbers`, FLAG, TEXT, a class of the registry, ``tuple``
    for any of them, or ``dict`` for several by their names.
    """
    hints = get_type_hints(cls, include_extras=True)
    return {name: _kind(hints[name], f"{name_of(cls)}.{name}") for name in cls._fields}  # type: ignore[attr-defined]


def _kind(hint: Any, where: str) -> Any:
    if get_origin(hint) is Annotated:
        base, *notes = get_args(hint)
        for note in notes:
            if isinstance(note, Numbers):
                return note._replace(scalar=base in (int, float))
    plain = {int: WHOLE, float: FINITE._replace(scalar=True), bool: FLAG, str: TEXT}
    if hint in plain:
        return plain[hint]
    if hint == Floats:
        return FINITE
    if isinstance(hint, type) and issubclass(hint, tuple):
        return hint
    if isinstance(hint, TypeVar) or hint is Any:
        return tuple
    if get_origin(hint) is dict:
        return dict
    raise TypeError(f"{where}: {hint} does not say what its numbers may be; see dualgap.training.states")


def _check_field(value: Any, fresh: Any, kind: Any, extent: Extent | None, path: str) -> None:
    if isinstance(kind, Numbers):
        _check_numbers(value, fresh, kind, extent, path)
    elif kind is FLAG and not isinstance(value, bool | np.bool_):
        raise FlawError(f"{path} is {_shown(value)}, and must be True or False")
    elif kind is TEXT and not isinstance(value, str):
        raise FlawError(f"{path} is {_shown(value)}, and must be a text")
    elif kind not in (FLAG, TEXT) and not isinstance(value, kind):
        raise FlawError(f"{path} is a {type(value).__name__}, and must be a {kind.__name__}")
    elif isinstance(value, dict):
        for name, item in value.items():
            if name_of(type(item)) in _CLASSES:  # what a callback of the user's remembers is its own business
                check_state(item, None, extent, f"{path}.{name}")
    elif isinstance(value, tuple):
        check_state(value, fresh, extent, path)


def _check_numbers(value: Any, fresh: Any, kind: Numbers, extent: Extent | None, path: str) -> None:
    kind = _for_problem(kind, value, extent)
    if isinstance(value, np.ndarray) == kind.scalar:
        raise FlawError(f"{path} is {_shown(value)}, and must be {'a number' if kind.scalar else 'an array'}")
    if kind.scalar:
        # kernels are compiled for ints or floats: one in place of the other is another type
        if isinstance(value, bool | np.bool_) or not isinstance(value, Integral if kind.whole else float):
            raise FlawError(
                f"{path} is {_shown(value)}, and must be {'a whole number' if kind.whole else 'a float'}"
            )
    elif value.dtype.kind not in ("iu" if kind.whole else "f"):
        raise FlawError(f"{path} has the dtype {value.dtype}")
    else:
        _check_shape(value, fresh, kind, extent, path)
    high: float = kind.high
    if kind.rows and extent is not None:
        high = extent.n - 1
    elif kind.words:
        high = 2**32 - 1
        if not np.any(value):
            raise FlawError(f"{path} is 0 in all its words, which no generator is")
    wrong = _wrong(value, kind.low, high, kind)
    if wrong is not None:
        where, number = wrong
        raise FlawError(f"{path}{where} is {number}, and must be {_words(kind.low, high, kind)}")
    if kind.fixed and fresh is not None and value != fresh:
        raise FlawError(f"{path} is {value}, and must be {fresh}")


def _for_problem(kind: Numbers, value: Any, extent: Extent | None) -> Numbers:
    """The kind of numbers of which a joint problem has ``several``, in the problem at hand; where none is,
    either will do.
    """
    joint = isinstance(value, np.ndarray) if extent is None else bool(extent.several)
    if not kind.several or not joint:
        return kind
    return kind._replace(scalar=False, shape=(*(kind.shape or ()), "K"))


def _check_shape(value: Any, fresh: Any, kind: Numbers, extent: Extent | None, path: str) -> None:
    """Dtype and shape are those of a fresh state, unless the kind says otherwise."""
    if fresh is not None and value.dtype != fresh.dtype:
        raise FlawError(f"{path} has the dtype {value.dtype}, and must have {fresh.dtype}")
    if not (value.flags.c_contiguous and value.flags.aligned and value.dtype.isnative):
        raise FlawError(f"{path} does not lie in memory as kernels want it")
    shape = None if fresh is None else fresh.shape
    if kind.shape is not None and extent is not None:
        if value.ndim != len(kind.shape):
            raise FlawError(f"{path} has {value.ndim} dimensions, and must have {len(kind.shape)}")
        pairs = zip(kind.shape, value.shape, strict=True)
        shape = tuple(size if name is None else extent.size_of(name) for name, size in pairs)
    if shape is not None and value.shape != shape:
        raise FlawError(f"{path} has the shape {value.shape}, and must have {shape}")


def _wrong(value: Any, low: float, high: float, kind: Numbers) -> tuple[str, Any] | None:
    """The first number that cannot be, and where it stands."""
    with np.errstate(invalid="ignore"):
        bad = np.logical_not((value >= low) & (value <= high))
        if not kind.whole and not kind.infinite:
            bad = bad | ~(np.abs(np.asarray(value, dtype=np.float64)) <= LARGEST)
        if kind.nan:
            bad = bad & ~np.isnan(value)
    if not np.any(bad):
        return None
    if not isinstance(value, np.ndarray):
        return "", value
    place = tuple(int(k) for k in np.argwhere(bad)[0])
    return f"[{', '.join(map(str, place))}]", value[place]


def _words(low: float, high: float, kind: Numbers) -> str:
    what = "a whole number" if kind.whole else ("a number" if kind.infinite else f"within {LARGEST:g} of 0")
    above = f" from {low:g} on" if low > -math.inf else ""
    below = f" up to {high:.17g}" if high < math.inf else ""
    return f"{what}{above}{below}"


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else text[:37] + "..."


state_class(Counts)
