"""The view as server-sent events: one for each change, made once for all who follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from penstock.control.live import LiveText, events


def test_it_is_made_at_most_once_a_second() -> None:
    now_s, made = 0.0, 0

    def make() -> str:
        nonlocal made
        made += 1
        return str(made)

    text = LiveText(make, lambda: now_s)
    assert [text.newest() for _ in range(3)] == ["1", "1", "1"]
    now_s = 1.0
    assert text.newest() == "2"


async def first(stream: AsyncIterator[str], count: int) -> list[str]:
    return [await anext(stream) for _ in range(count)]


def test_only_changes_are_told_and_it_ends() -> None:
    made = iter(["a", "a", "b"])
    over = False

    async def follow() -> list[str]:
        nonlocal over
        stream = events(LiveText(lambda: next(made), lambda: float("inf")), lambda: over)
        told = await first(stream, 2)
        over = True
        return told + [one async for one in stream]

    assert asyncio.run(follow()) == ["retry: 1000\n\n", "event: view\ndata: a\n\n"]
