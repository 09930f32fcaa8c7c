"""Numbers as decimal text and back, exactly, in compiled code.

``to_float(w, q)`` is the float64 nearest to ``w 10^q``, just as Python's ``float()`` rounds. Where ``w <
2^53`` and ``|q| <= 22`` both factors are exact and one operation rounds once (Clinger, PLDI 1990). Elsewhere
the product of w with 128 bits of ``10^q`` decides (Lemire, *Number parsing at a gigabyte per second*, 2021;
Mushtak and Lemire, *Fast number parsing without fallback*, 2023, prove that 128 bits are enough for w <
2^64).

``write_float`` writes the shortest digits that are read back as the same number and of these the nearest,
just as ``repr`` does (Giulietti, *The Schubfach way to render doubles*, 2020): around a number v lie the
decimals that round to it, between the middles to its neighbours. With ``10^k`` at most as long as that
interval and more than a tenth of it, some multiple of ``10^k`` is in it and one of ``10^(k+1)`` at most. The
latter has the fewest digits if there is one. 128 bits of ``10^-k`` are enough to compare with both ends, if
products are rounded to odd.

Nothing here overflows, so the code does the same compiled and as plain Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import Floats, Words
from .jit import kernel, product, put_word

Bytes = npt.NDArray[np.uint8]

MOST_DIGITS = 18  # of w: below 10^18 it fits into int64
LONGEST = 25  # characters of a number, and a blank
ROOM = 32  # bytes that writing a number may touch, from its first one on
UNDECIDED = math.nan

_LOWEST, _HIGHEST = -330, 330  # the exponents of the table
_NONE, _ONE, _2, _4, _8, _10, _16, _20, _32, _40, _52, _63, _100 = (
    np.uint64(k) for k in (0, 1, 2, 4, 8, 10, 16, 20, 32, 40, 52, 63, 100)
)
_LOW_9_BITS = np.uint64(0x1FF)  # of the product that do not get into 53 bits and two for rounding
_HIDDEN = np.uint64(1 << 52)
_LAST_EXACT = 55  # the highest power of ten with all its bits in the table
_10_TO_4, _10_TO_8 = np.uint64(10**4), np.uint64(10**8)
_ZEROS = np.uint64(0x3030303030303030)  # as text
_POINT = np.uint64(0x3030303030302E30)  # 0.000000


def _powers() -> tuple[Words, Words]:
    """The first 128 bits of ``10^q``, as two words: cut off for q >= 0, rounded up below."""
    high, low = [], []
    for q in range(_LOWEST, _HIGHEST + 1):
        five = 5 ** abs(q)
        if q >= 0:
            shift = 128 - five.bit_length()
            bits = five << shift if shift >= 0 else five >> -shift
        else:
            bits = (1 << (127 + five.bit_length())) // five + 1
            bits >>= bits.bit_length() - 128
        high.append(bits >> 64)
        low.append(bits & (2**64 - 1))
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64)


_inlined = kernel(
    forceinline=True
)  # to pass on an array is to count references to it, which takes as long as the work
_HIGH, _LOW = _powers()
_EXACT_POWERS: Floats = np.array([float(10**k) for k in range(23)])
_TENS = np.array([10**k for k in range(20)], dtype=np.uint64)


@kernel
def _leading_zeros(word: Any) -> int:
    """Of a word that is not 0."""
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(64 - step) == np.uint64(0):
            word <<= np.uint64(step)
            zeros += step
    return zeros


@kernel
def to_float(w: Any, q: Any) -> Any:
    """``w 10^q`` for 0 <= w < 10^18, rounded to nearest and ties to even; UNDECIDED outside some 1e-307 to
    1e308.
    """
    if w < (1 << 53) and -22 <= q <= 22:
        if q < 0:
            return w / _EXACT_POWERS[-q]
        return w * _EXACT_POWERS[q]
    if w == 0:
        return 0.0
    if q < _LOWEST or q > 308:
        return UNDECIDED
    zeros = _leading_zeros(np.uint64(w))
    word = np.uint64(w) << np.uint64(zeros)
    high, low = product(word, _HIGH[q - _LOWEST], _NONE)
    if high & _LOW_9_BITS == _LOW_9_BITS:  # a carry from further down could change what is kept
        carry, _ = product(word, _LOW[q - _LOWEST], _NONE)
        high, low = product(word, _HIGH[q - _LOWEST], carry)
    top = high >> _63
    shift = top + np.uint64(9)
    mantissa = high >> shift  # 54 bits: one more than the result has
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - zeros + 1023
    if exponent <= 1 or exponent >= 2046:
        return UNDECIDED  # subnormal, or nearly infinite
    halfway = (
        low <= _ONE and -4 <= q <= 23 and mantissa & np.uint64(3) == _ONE and (mantissa << shift) == high
    )
    if not halfway:  # a tie goes to the even neighbour, all else to the nearest
        mantissa += mantissa & _ONE
    mantissa >>= _ONE
    if mantissa >= _HIDDEN << _ONE:
        mantissa = _HIDDEN
        exponent += 1
    return math.ldexp(np.float64(mantissa), int(exponent) - 1075)


@_inlined
def _exponent(word: Any) -> int:
    """Of the highest bit, or one more if that is nearer; far below 0 for 0."""
    return np.int64(np.float64(np.int64(word)).view(np.uint64) >> _52) - 1023  # type: ignore[return-value]


@_inlined
def _digits_of(word: Any) -> int:
    """How many digits a number below 2^63 has."""
    word |= _ONE  # 0 has a digit as well
    fewest = ((_exponent(word) + 1) * 1233) >> 12  # 1233 / 4096 is hardly less than the logarithm of 2
    return fewest + np.int64(word >= _TENS[fewest])  # type: ignore[return-value]


@_inlined
def _eight_digits(word: Any) -> Any:
    """Of a number below 10^8, one a byte, the first in the lowest: halves, then pairs, then digits, side by
    side.
    """
    half = word // _10_TO_4
    halves = half | ((word - half * _10_TO_4) << _32)
    pair = ((halves * np.uint64(10486)) >> _20) & np.uint64(0x7F0000007F)
    pairs = pair | ((halves - pair * _100) << _16)
    ten = ((pairs * np.uint64(103)) >> _10) & np.uint64(0x000F000F000F000F)
    return ten | ((pairs - ten * _10) << _8)


@_inlined
def _write_short(word: Any, out: Bytes, at: int) -> int:
    """A number below 10^8; where it ends."""
    count = _digits_of(word)
    put_word(out, at, (_eight_digits(word) + _ZEROS) >> np.uint64(64 - 8 * count))
    return at + count


@_inlined
def write_whole(number: int, out: Bytes, at: int) -> int:
    """The digits of a whole number from 0 to 10^16 - 1; where they end."""
    word = np.uint64(number)
    if word < _10_TO_8:
        return _write_short(word, out, at)
    high = word // _10_TO_8
    at = _write_short(high, out, at)
    put_word(out, at, _eight_digits(word - high * _10_TO_8) + _ZEROS)
    return at + 8


@_inlined
def write_float(value: float, out: Bytes, at: int) -> int:
    """The shortest text that reads back as the very same finite number; where it ends."""
    if math.copysign(1.0, value) < 0.0:
        out[at] = np.uint8(45)  # -
        at += 1
        value = -value
    if value < 9007199254740992.0 and value == math.floor(value):
        return write_whole(np.int64(value), out, at)  # type: ignore[arg-type]
    if 1e-5 <= value < 1e7:  # few decimals are common, and one exact division says whether they are all
        word = np.uint64(np.int64(value * 1e8 + 0.5))
        if np.float64(np.int64(word)) / 1e8 == value:
            return _write_few_decimals(word, out, at)
    word, k = _shortest(value)
    return _write_decimal(word, k, out, at)


@_inlined
def _write_few_decimals(word: Any, out: Bytes, at: int) -> int:
    """``word 10^-8``, not whole; where it ends."""
    whole = word // _10_TO_8
    at = _write_short(whole, out, at)
    out[at] = np.uint8(46)
    decimals = _eight_digits(word - whole * _10_TO_8)
    put_word(out, at + 1, decimals + _ZEROS)
    return at + 2 + (_exponent(decimals) >> 3)


@_inlined
def _shortest(value: float) -> Any:
    """The decimal ``w 10^k`` for a number > 0, as w and k; w has up to 17 digits, the last of which may be
    0.
    """
    bits = np.float64(value).view(np.uint64)
    mantissa, exponent = bits & (_HIDDEN - _ONE), np.int64(bits >> _52)
    closer = mantissa == _NONE and exponent > 1  # below a power of 2 numbers lie closer than above
    if exponent > 0:
        mantissa |= _HIDDEN
        exponent -= 1
    exponent -= 1074
    k = (
        1262611 * exponent - (524031 if closer else 0)
    ) >> 22  # logarithms to base 10 of 2 and, if closer, of 3/4
    shift = np.uint64(exponent + ((-217706 * k) >> 16) + 1)
    high, low = _HIGH[-k - _LOWEST], _LOW[-k - _LOWEST]
    if -k > _LAST_EXACT:
        low += _ONE  # here as well, what is not exact must be rounded up
    odd = mantissa & _ONE  # the ends of the interval round to an even mantissa
    mantissa <<= _2
    first = _cut_to_odd((mantissa - _2 + np.uint64(closer)) << shift, high, low) + odd
    centre = _cut_to_odd(mantissa << shift, high, low)
    last = _cut_to_odd((mantissa + _2) << shift, high, low) - odd
    units, tens = centre >> _2, centre // _40
    up = (centre & (_4 - _ONE)) + (units & _ONE) > _2  # to the nearer, or of two the even one
    below, above = first <= units << _2, (units << _2) + _4 <= last
    up = above if below != above else up
    below, above = first <= _40 * tens, _40 * tens + _40 <= last
    return (_10 * (tens + np.uint64(above)) if below != above else units + np.uint64(up)), k


@_inlined
def _cut_to_odd(word: Any, high: Any, low: Any) -> Any:
    """The highest of the three words of a product, made odd if more was cut off than the power's rounding can
    cause.
    """
    carry, _ = product(word, low, _NONE)
    whole, rest = product(word, high, carry)
    return whole | np.uint64(rest > _ONE)


@_inlined
def _write_decimal(word: Any, k: int, out: Bytes, at: int) -> int:
    """``word 10^k``, for up to 17 digits; where the text ends."""
    count = _digits_of(word)
    ten = count - 1 + k  # the power of ten that the first digit stands for
    word *= _TENS[17 - count]
    high = word // _10_TO_8
    first = high // _10_TO_8
    left, right = _eight_digits(high - first * _10_TO_8), _eight_digits(word - high * _10_TO_8)
    digits = max(1, 2 + (_exponent(left) >> 3), 10 + (_exponent(right) >> 3))  # without zeros at the end
    if -5 <= ten < 0:
        put_word(out, at, _POINT)
        at += 1 - ten
        _put_digits(first, left, right, out, at, 1)
        return at + digits
    before = ten + 1 if 0 <= ten < 17 else 1
    _put_digits(first, left, right, out, at, 2)
    for p in range(at + 1, at + before):
        out[p] = out[p + 1]
    out[at + before] = np.uint8(46)
    at += digits + 1 if digits > before else before
    if before == ten + 1:
        return at
    out[at] = np.uint8(101)  # e
    at += 1
    if ten < 0:
        out[at] = np.uint8(45)
        at += 1
    return write_whole(abs(ten), out, at)


@_inlined
def _put_digits(first: Any, left: Any, right: Any, out: Bytes, at: int, step: int) -> None:
    """17 of them, where the second comes so many places after the first."""
    out[at] = np.uint8(first) + np.uint8(48)
    put_word(out, at + step, left + _ZEROS)
    put_word(out, at + step + 8, right + _ZEROS)
