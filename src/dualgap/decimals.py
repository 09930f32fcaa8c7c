"""Numbers as decimal text and back, exactly, in compiled code.

``to_float(w, q)`` is the float64 nearest to ``w 10^q``, just as Python's ``float()`` rounds. Where ``w < 2^53`` and
``|q| <= 22`` both factors are exact and one operation rounds once (Clinger, PLDI 1990). Elsewhere the product of w with
128 bits of ``10^q`` decides (Lemire, *Number parsing at a gigabyte per second*, 2021; Mushtak and Lemire, *Fast number
parsing without fallback*, 2023, prove that 128 bits are enough for w < 2^64).

``write_float`` writes a text of 15, 16 or 17 digits, whichever is the first that ``to_float`` reads back as the same
number. A number that has a text of 15 digits or less gets the shortest: rounding it to 15 digits gives it back.

Nothing here overflows, so the code does the same compiled and as plain Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import Floats, Words
from .jit import kernel

Bytes = npt.NDArray[np.uint8]

MOST_DIGITS = 18  # of w: below 10^18 it fits into int64
LONGEST = 25  # characters of a number, and a blank
UNDECIDED = math.nan

_LOWEST, _HIGHEST = -330, 330  # the exponents of the table
_ONE, _32, _63, _64 = (np.uint64(k) for k in (1, 32, 63, 64))
_HALF = np.uint64(0xFFFFFFFF)
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW_9_BITS = np.uint64(0x1FF)  # of the product that do not get into 53 bits and two for rounding
_HIDDEN = np.uint64(1 << 52)


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


_HIGH, _LOW = _powers()
_EXACT_POWERS: Floats = np.array([float(10**k) for k in range(23)])
_TENS = np.array([10**k for k in range(19)], dtype=np.int64)


@kernel
def _product(a: Any, b: Any) -> Any:
    """The two words of ``a b``, high and low."""
    a0, a1, b0, b1 = a & _HALF, a >> _32, b & _HALF, b >> _32
    low, cross, other = a0 * b0, a0 * b1, a1 * b0
    middle = (low >> _32) + (cross & _HALF) + (other & _HALF)
    high = a1 * b1 + (cross >> _32) + (other >> _32) + (middle >> _32)
    return high, ((middle & _HALF) << _32) | (low & _HALF)


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
    """``w 10^q`` for 0 <= w < 10^18, rounded to nearest and ties to even; UNDECIDED outside some 1e-307 to 1e308."""
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
    high, low = _product(word, _HIGH[q - _LOWEST])
    if high & _LOW_9_BITS == _LOW_9_BITS:  # a carry from further down could change what is kept
        carry, _ = _product(word, _LOW[q - _LOWEST])
        if low > _FULL - carry:
            high += _ONE
            low -= (_FULL - carry) + _ONE
        else:
            low += carry
    top = high >> _63
    shift = top + np.uint64(9)
    mantissa = high >> shift  # 54 bits: one more than the result has
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - zeros + 1023
    if exponent <= 1 or exponent >= 2046:
        return UNDECIDED  # subnormal, or nearly infinite
    halfway = low <= _ONE and -4 <= q <= 23 and mantissa & np.uint64(3) == _ONE and (mantissa << shift) == high
    if not halfway:  # a tie goes to the even neighbour, all else to the nearest
        mantissa += mantissa & _ONE
    mantissa >>= _ONE
    if mantissa >= _HIDDEN << _ONE:
        mantissa = _HIDDEN
        exponent += 1
    return math.ldexp(np.float64(mantissa), int(exponent) - 1075)


@kernel
def _scaled(value: float, k: int) -> int:
    """``value 10^k``, to the nearest whole number (almost: the caller checks), where that has 15 to 18 digits."""
    fraction, exponent = math.frexp(value)
    word = np.uint64(fraction * 9007199254740992.0) << np.uint64(11)
    high, _ = _product(word, _HIGH[k - _LOWEST])
    shift = np.uint64(10 + 53 - exponent - ((217706 * k) >> 16))
    return np.int64((high + (_ONE << (shift - _ONE))) >> shift)  # type: ignore[return-value]


@kernel
def _digits_of(number: int) -> int:
    """How many digits a whole number >= 0 has."""
    count = 1
    while count < 19 and number >= _TENS[count]:
        count += 1
    return count


@kernel
def _write_digits(number: int, count: int, out: Bytes, at: int) -> int:
    """The last ``count`` digits of a number; where they end. Two a division, as divisions wait for each other."""
    p = at + count - 2
    while p >= at:
        rest = number // 100
        pair = number - 100 * rest
        ten = pair // 10
        out[p] = np.uint8(48 + ten)
        out[p + 1] = np.uint8(48 + pair - 10 * ten)
        number = rest
        p -= 2
    if p == at - 1:
        out[at] = np.uint8(48 + number % 10)
    return at + count


@kernel
def write_whole(number: int, out: Bytes, at: int) -> int:
    """The digits of a whole number >= 0; where they end."""
    return _write_digits(number, _digits_of(number), out, at)


@kernel
def write_float(value: float, out: Bytes, at: int) -> int:
    """A text that reads back as the very same number; where it ends, or -1 for what is left to ``repr``."""
    if math.copysign(1.0, value) < 0.0:
        out[at] = np.uint8(45)  # -
        at += 1
        value = -value
    if value < 9007199254740992.0 and value == math.floor(value):
        return write_whole(np.int64(value), out, at)  # type: ignore[arg-type]
    if value < 9e9:  # few decimals are common, and need no more than one exact division to check
        for k in (3, 7, 12):
            scaled = value * _EXACT_POWERS[k] + 0.5
            if scaled < 9007199254740992.0 and math.floor(scaled) / _EXACT_POWERS[k] == value:
                return _write_decimal(np.int64(scaled), k, out, at)  # type: ignore[arg-type]
    if not 1e-290 < value < 1e290 or math.frexp(value)[0] == 0.5:  # below a power of 2 numbers lie closer than above
        return -1
    ten = math.floor(math.log10(value))
    for digits in range(15, 18):
        k = digits - 1 - ten
        whole = _scaled(value, k)
        if whole < 1000000000000000000 and to_float(whole, -k) == value:
            return _write_decimal(whole, k, out, at)
    return -1


@kernel
def _write_decimal(whole: int, k: int, out: Bytes, at: int) -> int:
    """``whole 10^-k``; where the text ends."""
    while whole % 10 == 0:
        whole //= 10
        k -= 1
    count = _digits_of(whole)
    ten = count - 1 - k  # the power of ten that the first digit stands for
    if k <= 0 and ten < 17:
        return _write_zeros(-k, out, _write_digits(whole, count, out, at))
    if 0 <= ten < 17:
        before = whole // _TENS[k]
        at = _write_digits(before, count - k, out, at)
        out[at] = np.uint8(46)
        return _write_digits(whole - before * _TENS[k], k, out, at + 1)
    if -5 <= ten < 0:
        out[at] = np.uint8(48)
        out[at + 1] = np.uint8(46)
        return _write_digits(whole, count, out, _write_zeros(k - count, out, at + 2))
    first = whole // _TENS[count - 1]
    at = _write_digits(first, 1, out, at)
    if count > 1:
        out[at] = np.uint8(46)
        at = _write_digits(whole - first * _TENS[count - 1], count - 1, out, at + 1)
    out[at] = np.uint8(101)  # e
    at += 1
    if ten < 0:
        out[at] = np.uint8(45)
        at += 1
    return write_whole(abs(ten), out, at)


@kernel
def _write_zeros(count: int, out: Bytes, at: int) -> int:
    for p in range(at, at + count):
        out[p] = np.uint8(48)
    return at + count
