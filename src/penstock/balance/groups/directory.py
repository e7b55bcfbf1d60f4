"""Mini-partitions of a group by extendible hashing, each between theta and twice theta.

A bucket holds the keys whose hashes begin with certain bits, so a directory is a set of prefixes
that cover everything once. Because these are the *most* significant bits, a bucket is one interval
of hashes: where rows are sorted by hash, splitting and merging copy nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.errors import InputError
from penstock.load.arrays import Ints


@dataclass(frozen=True, order=True)
class Bucket:
    """All hashes whose first ``depth`` bits are ``prefix``.

    >>> Bucket(2, 2).halves
    (Bucket(prefix=4, depth=3), Bucket(prefix=5, depth=3))
    """

    prefix: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        if not (self.depth >= 0 and 0 <= self.prefix < 1 << self.depth):
            raise InputError(
                f"no bucket has the prefix {self.prefix} of {self.depth} bits",
                hint="Give a prefix below two to the number of its bits.",
            )

    @property
    def halves(self) -> tuple[Bucket, Bucket]:
        first = Bucket(2 * self.prefix, self.depth + 1)
        return first, first.buddy

    @property
    def buddy(self) -> Bucket:
        """The bucket it was split from, or can be merged with."""
        return Bucket(self.prefix ^ 1, self.depth)

    @property
    def parent(self) -> Bucket:
        return Bucket(self.prefix >> 1, self.depth - 1)

    def entries(self, bits: int) -> range:
        """Which of the ``2**bits`` entries of a table with as many bits point to it."""
        width = 1 << (bits - self.depth)
        return range(self.prefix * width, (self.prefix + 1) * width)


@dataclass(frozen=True)
class SplitDirectory:
    """The buckets of one group, in the order of their hashes; they cover all hashes, each once.

    >>> SplitDirectory().depth, SplitDirectory((Bucket(0, 1), Bucket(2, 2), Bucket(3, 2))).depth
    (0, 2)
    """

    buckets: tuple[Bucket, ...] = (Bucket(),)

    def __post_init__(self) -> None:
        covered = 0
        for bucket in self.buckets:
            if (entries := bucket.entries(self.depth)).start != covered:
                raise InputError(
                    f"the buckets of a directory leave a gap or overlap at {bucket}",
                    hint="Give every hash exactly one bucket, in order.",
                )
            covered = entries.stop
        if covered != 1 << self.depth:
            raise InputError(f"the buckets of a directory end at {covered} of {1 << self.depth}")

    @cached_property
    def depth(self) -> int:
        """The global depth: how many bits of a hash a look into the table needs."""
        return max((bucket.depth for bucket in self.buckets), default=0)

    @cached_property
    def table(self) -> tuple[Bucket, ...]:
        """The bucket of each combination of ``depth`` bits."""
        return tuple(bucket for bucket in self.buckets for _ in bucket.entries(self.depth))


@dataclass(frozen=True)
class SizeLimits:
    """Buckets are kept from ``theta`` to ``2 theta``, in whatever unit sizes are given."""

    theta: float

    def __post_init__(self) -> None:
        if not self.theta > 0:
            raise InputError(f"a theta of {self.theta}", hint="Give a size above 0.")

    @property
    def most(self) -> float:
        return 2 * self.theta


@dataclass(frozen=True)
class Tuned:
    """A directory after tuning, what was done, and the buckets that one key makes too large."""

    directory: SplitDirectory
    splits: int = 0
    merges: int = 0
    hot: tuple[Bucket, ...] = ()


def tune(directory: SplitDirectory, cells: Ints, limits: SizeLimits) -> Tuned:
    """Splits what is above ``2 theta``, merges with its buddy what is below ``theta``.

    ``cells`` are the sizes of the finest parts: for some k, of each of the ``2**k`` beginnings of k
    bits. A cell that alone is above ``2 theta`` is a key that no split makes smaller: its bucket is
    *hot*, and is left alone once the rest of it is within the limits. Costs O(cells + buckets).

    >>> limits = SizeLimits(10)
    >>> tune(SplitDirectory(), np.array([15, 1, 2, 9]), limits).directory.buckets
    (Bucket(prefix=0, depth=1), Bucket(prefix=1, depth=1))
    >>> tune(SplitDirectory(), np.array([0, 25, 2, 3]), limits).hot
    (Bucket(prefix=0, depth=0),)
    """
    sizes = _Sizes(cells)
    if directory.depth > sizes.bits:
        raise InputError(
            f"a directory of depth {directory.depth} is tuned by sizes of {sizes.bits} bits",
            hint="Give sizes at least as fine as the directory.",
        )
    kept = _merge(set(directory.buckets), sizes, limits)
    merges = len(directory.buckets) - len(kept)
    split: list[Bucket] = []
    for bucket in sorted(kept, key=lambda bucket: bucket.entries(sizes.bits).start):
        split += _split(bucket, sizes, limits)
    hot = tuple(bucket for bucket in split if sizes.of(bucket) > limits.most)
    return Tuned(SplitDirectory(tuple(split)), len(split) - len(kept), merges, hot)


class _Sizes:
    """The size of any bucket, and of the largest cell in it, from the sizes of all cells."""

    def __init__(self, cells: Ints) -> None:
        self.bits = len(cells).bit_length() - 1
        if len(cells) != 1 << self.bits:
            raise InputError(
                f"{len(cells)} cells are no power of two", hint="Give a size for each beginning."
            )
        self._cells = cells
        self._sums = np.concatenate(([0], np.cumsum(cells)))

    def of(self, bucket: Bucket) -> float:
        entries = bucket.entries(self.bits)
        return float(self._sums[entries.stop] - self._sums[entries.start])

    def largest_cell(self, bucket: Bucket) -> float:
        entries = bucket.entries(self.bits)
        return float(self._cells[entries.start : entries.stop].max())


def _merge(buckets: set[Bucket], sizes: _Sizes, limits: SizeLimits) -> set[Bucket]:
    """Deepest first, so that what was merged may be merged again."""
    for depth in range(max(bucket.depth for bucket in buckets), 0, -1):
        for bucket in [deepest for deepest in buckets if deepest.depth == depth]:
            together = sizes.of(bucket) + sizes.of(bucket.buddy)
            small = sizes.of(bucket) < limits.theta and together < limits.most
            if small and bucket in buckets and bucket.buddy in buckets:
                buckets = buckets - {bucket, bucket.buddy} | {bucket.parent}
    return buckets


def _split(bucket: Bucket, sizes: _Sizes, limits: SizeLimits) -> list[Bucket]:
    size = sizes.of(bucket)
    if size <= limits.most or bucket.depth == sizes.bits:
        return [bucket]
    largest = sizes.largest_cell(bucket)
    if largest > limits.most and size - largest <= limits.most:
        return [bucket]
    return [part for half in bucket.halves for part in _split(half, sizes, limits)]
