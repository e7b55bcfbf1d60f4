"""How much of a node's memory is Java's heap."""

from __future__ import annotations

_MEBIBYTE = 1 << 20
_LEAST_BYTES = 512 * _MEBIBYTE


def heap_bytes(memory_bytes: int) -> int:
    """Half of it: the rest belongs to the JVM itself and to the Python processes.

    Spark refuses to start with less than about 470 MB of heap.

    >>> heap_bytes(2 << 30) >> 20, heap_bytes(400 << 20) >> 20
    (1024, 512)
    """
    return max(_LEAST_BYTES, memory_bytes // 2)
