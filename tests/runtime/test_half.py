"""Numbers of 16 bits in kernels."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from dualgap.runtime import half


@pytest.mark.parametrize("by_processor", [True, False])
def test_every_finite_number_is_widened_exactly(by_processor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_processor and not half.converts_half():
        pytest.skip("this processor does not convert them")
    monkeypatch.setattr(half, "converts_half", lambda: by_processor)

    def widen(bits: Any, found: Any) -> None:
        for i in range(bits.shape[0]):
            found[i] = half.widened(bits[i])

    bits = np.arange(1 << 16, dtype=np.uint16)
    found = np.empty(bits.size)
    numba.njit(widen)(bits, found)
    numbers = bits.view(np.float16)
    finite = np.isfinite(numbers)
    assert finite.sum() == 63488
    expected = numbers.astype(np.float64)
    assert found[finite].tobytes() == expected[finite].tobytes()  # signs of zeros, too
    assert [half.widened(word) for word in bits[finite][::97]] == expected[finite][::97].tolist()


def test_kernels_for_a_processor_that_is_named_do_not_rely_on_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numba.config, "CPU_NAME", "generic")
    assert not half.converts_half()
