"""Compiled loops where nothing can be kept on disk."""

import numba
import pytest

from penstock.load.compiled import compiled


def double(value: int) -> int:
    return 2 * value


def test_without_a_place_for_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    real = numba.njit

    def njit(*functions: object, cache: bool = False) -> object:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(*functions)

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled(double)(4) == 8
