"""Decimal text and float64: what Python's float() says, bit for bit, both ways. As a script: a part of it,
for plain Python.
"""

from __future__ import annotations

import decimal
import io
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dualgap.data.formats.svmlight import pieces as svmlight_pieces
from dualgap.data.formats.svmlight.lines import Range
from dualgap.data.formats.svmlight.pieces import parse_piece
from dualgap.data.formats.svmlight.writing import write_blocks
from dualgap.runtime.decimals import LONGEST, MOST_DIGITS, ROOM, to_float, write_float

ANY = Range(0, 2**32 - 1, str)


def parsed(tokens: list[str]) -> Any:
    """Every token as the label of a row, read in one piece."""
    return parse_piece(np.frombuffer(("\n".join(tokens) + "\n").encode(), dtype=np.uint8), ANY).labels


def check(tokens: list[str]) -> None:
    """Every token is read as float() reads it."""
    found, expected = parsed(tokens), np.array([float(token) for token in tokens])
    wrong = np.flatnonzero(found.view(np.int64) != expected.view(np.int64))
    assert not wrong.size, (
        f"{tokens[wrong[0]]} is read as {found[wrong[0]]!r}, and {wrong.size - 1} more are wrong"
    )


def wholes(rng: np.random.Generator, n: int) -> list[int]:
    """Numbers of 1 to 18 digits, all lengths alike."""
    return [int(w) for w in rng.integers(0, 10 ** rng.integers(1, MOST_DIGITS + 1, n))]


def with_exponents(rng: np.random.Generator, n: int) -> list[str]:
    return [
        f"{sign}{w}{e}{q}"
        for sign, w, e, q in zip(
            rng.choice(["", "-", "+"], n).tolist(),
            wholes(rng, n),
            rng.choice(["e", "E", "e+", "e-", "E-", "e0", "e-0"], n).tolist(),
            rng.integers(0, 290, n).tolist(),
            strict=True,
        )
    ]


def with_points(rng: np.random.Generator, n: int) -> list[str]:
    tokens = []
    for w, at, zeros in zip(
        wholes(rng, n), rng.random(n).tolist(), rng.integers(0, 4, n).tolist(), strict=True
    ):
        digits = "0" * zeros + str(w)
        cut = int(at * (len(digits) + 1))
        tokens.append(f"{digits[:cut]}.{digits[cut:]}")
    return tokens


def with_everything(rng: np.random.Generator, n: int) -> list[str]:
    tails = [f"e{q}" for q in range(-280, 281)]
    return [
        token + tails[k] for token, k in zip(with_points(rng, n), rng.integers(0, len(tails), n), strict=True)
    ]


def short(rng: np.random.Generator, n: int) -> list[str]:
    """The numbers of most files: few digits, small exponents."""
    return [
        f"{x:.{k}g}"
        for x, k in zip(rng.normal(size=n).tolist(), rng.integers(1, 18, n).tolist(), strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [with_exponents, with_points, with_everything, short])
def test_millions_of_random_decimals_without_a_careful_look(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careful(line: bytes, allowed: Range) -> None:
        raise AssertionError(f"{line!r} must not need the slow parser")

    monkeypatch.setattr(svmlight_pieces, "parse_line", careful)
    for seed in range(5):
        check(kind(np.random.default_rng(seed), 100_000))


def near_halfway() -> Iterator[str]:
    """For every power of ten, those w below 10^18 for which w 10^q is nearest to a number of 54 bits, by
    continued fractions. Where the 54th bit is 1, such a product is next to a tie.
    """
    for q in range(-330, 309):
        for bits in (50, 53, 55, 57, 58, 59):
            low = 1 << bits
            a, b = (low * 10**q, low) if q >= 0 else (low, low * 10**-q)
            shift = 54 - bits - (a.bit_length() - b.bit_length())
            a, b = (a << shift, b) if shift > 0 else (a, b << -shift)
            # far more than convergents of 60 bits need
            excess = max(0, min(a.bit_length(), b.bit_length()) - 300)
            a, b = a >> excess, b >> excess
            before, now = 1, 0  # denominators of the convergents
            while b and now < 2 * low:
                whole, (a, b) = a // b, (b, a % b)
                before, now = now, whole * now + before
                for w in (now, now + before):
                    w *= max(1, -(-low // w)) if w else 0
                    if low <= w < min(2 * low, 10**MOST_DIGITS):
                        yield f"{w}e{q}"


def test_decimals_next_to_a_tie() -> None:
    tokens = sorted(set(near_halfway()))
    assert len(tokens) > 10_000
    check([token for token in tokens if abs(float(token)) < np.inf])


def ties(rng: np.random.Generator, n: int) -> Iterator[str]:
    """Exactly half way between two neighbours, and next to that."""
    for _ in range(n):
        middle = 2 * int(rng.integers(2**52, 2**53)) + 1
        for power in range(5):
            yield from (str((middle << power) + step) for step in (-1, 0, 1))
        for places in (1, 2):
            yield from (f"{middle * 5**places + step}e-{places}" for step in (-1, 0, 1))
        for q in range(1, 24):  # w 5^q has 54 bits and is odd
            w = int(rng.integers(2**53 // 5**q, 2**54 // 5**q + 1)) | 1
            yield from (f"{w + step}e{q}" for step in (-1, 0, 1))


def test_ties_go_to_the_even_neighbour() -> None:
    check(list(ties(np.random.default_rng(0), 300)))


def exactly(number: Fraction) -> str:
    """All digits of a number whose denominator is a power of 2."""
    return f"{Decimal(number.numerator) / Decimal(number.denominator)}"


def borders(n: int) -> Iterator[str]:
    """Around the smallest and largest numbers: neighbours, and what is half way between them, to the last
    digit.
    """
    with decimal.localcontext(decimal.Context(prec=1100)):
        for border in (
            5e-324,
            1e-323,
            2.2250738585072014e-308,
            1e-307,
            1.7976931348623157e308,
            1e-290,
            1e290,
        ):
            for direction in (0.0, math.inf):
                at = border
                for _ in range(n):
                    beyond = math.nextafter(at, direction)
                    if math.isinf(beyond):
                        break
                    halfway = exactly((Fraction(at) + Fraction(beyond)) / 2)
                    yield from (repr(at), f"{at:.17e}", f"{at:.25e}", halfway, f"{Decimal(halfway):.17e}")
                    at = beyond


def test_the_smallest_and_the_largest_numbers() -> None:
    last = "1.797693134862315807e308"  # what lies just below the limit beyond which float() says inf
    tokens = [token for token in borders(40) if float(token) < np.inf]
    tokens += [
        last,
        "2.4703282292062327208e-324",
        "2.4703282292062328e-324",
        "1e-400",
        "0e400",
        "0.0e99999",
        "-0.0e-9",
    ]
    tokens += [f"{k}e{q}" for k in (1, 9, 17, 179, 22250738585072014) for q in range(-345, 310)]
    check([token for token in tokens if float(token) < np.inf])


def test_random_subnormals() -> None:
    bits = np.random.default_rng(0).integers(1, 2**53, 2000)
    check([repr(float(value)) for value in bits.view(np.float64)])


@given(
    digits=st.text("0123456789", min_size=MOST_DIGITS - 2, max_size=60),
    cut=st.integers(0, 60),
    zeros=st.integers(0, 400),
    q=st.integers(-420, 420),
)
@settings(max_examples=400)
def test_long_digits(digits: str, cut: int, zeros: int, q: int) -> None:
    tokens = [
        f"{digits[:cut]}.{digits[cut:]}e{q}",
        f"0.{'0' * zeros}{digits}e{q}",
        f"{digits}{'0' * zeros}e-{zeros}",
    ]
    tokens = [token for token in tokens if abs(float(token)) < np.inf]
    if tokens:
        check(tokens)


def test_to_float_decides_almost_everything() -> None:
    rng = np.random.default_rng(0)
    for w, q in zip(wholes(rng, 3000), rng.integers(-340, 320, 3000).tolist(), strict=True):
        found, expected = to_float(w, q), float(f"{w}e{q}")
        if np.isnan(found):
            assert expected < 1e-306 or expected > 8e307
        else:
            assert found == expected


def written(values: Any) -> list[str]:
    """Every value as the label of a row."""
    stream = io.BytesIO()
    write_blocks(stream, [(sp.csr_array((values.size, 1)), values)], zero_based=False, threads=1)
    return stream.getvalue().decode().splitlines()


def digits_of(text: str) -> str:
    """Without the zeros on either side."""
    return text.lower().partition("e")[0].replace(".", "").strip("+-0")


def any_numbers(rng: np.random.Generator, n: int) -> Any:
    values = rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64)
    return values[np.isfinite(values)]


def rounded(rng: np.random.Generator, n: int) -> Any:
    numbers = rng.normal(size=n) * 10.0 ** rng.integers(-6, 16, n)
    return np.array([round(x, k % 17) for k, x in enumerate(numbers.tolist())])


def singles(rng: np.random.Generator, n: int) -> Any:
    return rng.normal(size=n).astype(np.float32).astype(np.float64)


def plain(rng: np.random.Generator, n: int) -> Any:
    return rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n)


def around_powers(rng: np.random.Generator, n: int) -> Any:
    """Powers of 2, below which numbers lie closer than above, and of 10, and their neighbours."""
    powers = np.concatenate([2.0 ** np.arange(-1074, 1024), [float(f"1e{q}") for q in range(-323, 309)]])
    return np.concatenate([powers, np.nextafter(powers, 0.0), np.nextafter(powers, 1e308), -powers])


def wholes_and_bits(rng: np.random.Generator, n: int) -> Any:
    return np.concatenate(
        [rng.integers(-(2**63), 2**63, n).astype(float), rng.integers(-(2**56), 2**56, n) / 8.0]
    )


def few_decimals(rng: np.random.Generator, n: int) -> Any:
    """Up to 9 decimals, around all powers of ten that lie on the way from a point to an exponent."""
    numbers = (1.0 + rng.normal(size=n) * 10.0 ** rng.integers(-9, 0, n)) * 10.0 ** rng.integers(-7, 9, n)
    return np.array([round(x, 4 + k % 6) for k, x in enumerate(numbers.tolist())])


def subnormals(rng: np.random.Generator, n: int) -> Any:
    bits = np.concatenate([np.arange(1, 2000), rng.integers(1, 2 ** rng.integers(1, 53, n // 20))])
    return bits.view(np.float64)


def around_whole(rng: np.random.Generator, n: int) -> Any:
    """Where whole numbers are the only ones, and half of them, and where texts get an exponent."""
    return np.concatenate(
        [start + np.arange(-3000.0, 3000.0) / 2 for start in (2.0**52, 2.0**53, 2.0**54, 1e16, 1e17)]
    )


KINDS = [
    any_numbers,
    rounded,
    singles,
    plain,
    around_powers,
    wholes_and_bits,
    few_decimals,
    subnormals,
    around_whole,
]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_has_the_digits_of_repr_and_reads_back_as_the_same(kind: Any) -> None:
    values = kind(np.random.default_rng(0), 100_000)
    tokens = written(values)
    assert np.array([float(token) for token in tokens]).tobytes() == values.tobytes()
    assert parsed(tokens).tobytes() == values.tobytes()
    for token, value in zip(tokens, values.tolist(), strict=True):
        assert digits_of(token) == digits_of(repr(value)), f"{token} for {value!r}"
        assert len(token) < LONGEST


@pytest.mark.parametrize(
    "texts",
    [
        ["0", "-0", "7", "-1", "10", "99999999", "100000000", "9007199254740991", "9007199254740992"],
        ["10000000000000000", "12345678901234568", "1e17", "1e23", "1.7976931348623157e308"],
        [
            "0.5",
            "-0.1",
            "99.99",
            "2.5",
            "0.30000000000000004",
            "0.00001",
            "0.00001234",
            "0.000012345678901234568",
        ],
        [
            "1234567.12345678",
            "9999999.99999999",
            "12345678.12345678",
            "123456789.12345679",
            "1234567890123456.8",
        ],
        ["9.5e-6", "1e-8", "1.25e-7", "2.2250738585072014e-308", "1e-323", "5e-324"],
    ],
)
def test_what_texts_look_like(texts: list[str]) -> None:
    assert written(np.array([float(text) for text in texts])) == texts


def test_numbers_keep_to_their_room() -> None:
    for kind in KINDS:
        for value in kind(np.random.default_rng(2), 1000)[::7].tolist():
            out = np.full(3 * ROOM, 1, dtype=np.uint8)
            write_float(value, out, ROOM)
            assert (out[:ROOM] == 1).all(), value
            assert (out[2 * ROOM :] == 1).all(), value


def test_the_longest_texts_have_room() -> None:
    values = -np.concatenate([10.0 ** np.arange(-307.0, 300.0) / k for k in (3, 7, 11)])
    assert max(map(len, written(values))) == LONGEST - 1, "LONGEST is more than is needed"
    X = sp.csr_array(np.tile(values, (3, 1)))
    stream = io.BytesIO()
    write_blocks(stream, [(X, values[:3])], zero_based=True)
    for k, line in enumerate(stream.getvalue().decode().splitlines()):
        label, *entries = line.split(" ")
        assert float(label) == values[k]
        assert [float(entry.partition(":")[2]) for entry in entries] == values.tolist()


@pytest.mark.slow
def test_the_same_as_plain_python() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "error", __file__], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert "all hold" in run.stdout


def as_plain_python() -> None:
    rng = np.random.default_rng(1)
    for kind in (with_exponents, with_points, with_everything, short):
        check(kind(rng, 2000))
    check(list(ties(rng, 5)))
    check([token for token in borders(2) if float(token) < np.inf])
    check(["9" * k for k in range(1, 40)])
    out = np.zeros(ROOM, dtype=np.uint8)
    for kind in KINDS:
        for value in kind(rng, 10_000)[::20].tolist():
            end = write_float(value, out, 0)
            text = out[:end].tobytes().decode()
            assert float(text) == value, value
            assert digits_of(text) == digits_of(repr(value)), value
    assert not svmlight_pieces._parse.__module__.startswith("numba")
    print("all hold")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    as_plain_python()
