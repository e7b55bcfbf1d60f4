"""How much of a node's memory is Java's heap."""

from __future__ import annotations

_MEBIBYTE = 1 << 20
_KEPT_BACK_BYTES = 384 * _MEBIBYTE
_LEAST_BYTES = 512 * _MEBIBYTE


def heap_bytes(memory_bytes: int) -> int:
    """Half of it: the rest belongs to the JVM itself and to the Python processes.

    Spark refuses to start with less than about 470 MB of heap.

    >>> heap_bytes(2 << 30) >> 20, heap_bytes(400 << 20) >> 20
    (1024, 512)
    """
    return max(_LEAST_BYTES, memory_bytes // 2)


def first_heap_bytes(memory_bytes: int) -> int:
    """What Java has from the start: half of its heap, or all but 384 MiB where that is more.

    It goes through all of its memory before it takes more of it, so with much state every step
    would be a pause; where there is little, what is not needed is better not taken.

    >>> first_heap_bytes(1 << 30) >> 20, first_heap_bytes(3 << 30) >> 20
    (256, 1152)
    """
    heap = heap_bytes(memory_bytes)
    return max(heap // 2, heap - _KEPT_BACK_BYTES)
