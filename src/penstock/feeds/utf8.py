"""Bytes that should be UTF-8 and may not be: wrong ones are marked, so that rows can be told apart.

A CSV reader gives up a whole file for one wrong byte. So it is handed text that is always right,
in which each wrong byte is a character that no text may contain.
"""

from __future__ import annotations

import codecs
import io
from io import BufferedIOBase
from typing import Any

import pyarrow as pa

MARK = "\U0010ffff"
"""Stands for a byte that was not UTF-8; Unicode keeps this number free for such uses."""


def _mark(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return MARK * (error.end - error.start), error.end


MARK_WRONG = "penstock.mark"
"""The way of decoding that marks what is wrong."""
codecs.register_error(MARK_WRONG, _mark)


class MarkedStream(io.RawIOBase):
    """``source`` with every wrong byte marked; ``found`` says whether there was any so far.

    >>> MarkedStream(pa.BufferReader(b"caf\\xe9,1")).read().decode() == f"caf{MARK},1"
    True
    """

    def __init__(self, source: pa.NativeFile | BufferedIOBase) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8")(MARK_WRONG)
        self._left = b""
        self.found = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._left:
            piece = self._source.read(max(len(buffer), io.DEFAULT_BUFFER_SIZE))
            text = self._decoder.decode(piece, final=not piece)
            self.found = self.found or MARK in text
            self._left = text.encode()
            if not piece:
                break
        given = self._left[: len(buffer)]
        self._left = self._left[len(given) :]
        buffer[: len(given)] = given
        return len(given)

    def close(self) -> None:
        self._source.close()
        super().close()


def shown(text: str) -> str:
    """Text for people: marks become the usual sign for what cannot be shown.

    >>> shown(f"caf{MARK}")
    'caf�'
    """
    return text.replace(MARK, "\N{REPLACEMENT CHARACTER}")
