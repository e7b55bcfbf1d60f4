"""What a system could not use of its streams: counted, told once, and there to be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.channels.channel import Channel
from penstock.channels.dead_letters import DeadLetters, has_ended_unread
from penstock.channels.layout import StateLayout
from penstock.control.answer_models import LetterAnswer, SetAsideAnswer
from penstock.control.system import System
from penstock.feeds.set_aside import set_aside_text
from penstock.model.ids import channel_for
from penstock.model.sources import RunningSource

Counts = Mapping[str, int]


def letters_of(state: Path, stream: str) -> DeadLetters:
    """Where the rows of a stream lie that could not be used."""
    return DeadLetters(StateLayout(state).letters(stream))


def outside_streams(system: System) -> list[str]:
    """The streams where rows can be late or malformed.

    Those from outside, and those with an event time of their own.
    """
    found: set[str] = set()
    for deployment in system.deployments.values():
        streams = deployment.network.streams
        # What one brings in, another reads as a stream of the running system.
        running = {stream.name for stream in streams if isinstance(stream.source, RunningSource)}
        found |= set(deployment.network.judged) - running
    return sorted(found)


def set_aside_answer(state: Path, streams: Iterable[str]) -> list[SetAsideAnswer]:
    """Every stream of which something was set aside: how much of each kind, why, and where."""
    found = []
    for name in streams:
        letters = letters_of(state, name)
        kinds = {kind: n for kind, n in letters.counts().items() if n}
        if kinds:
            reasons = letters.reasons()
            nothing = has_ended_unread(Channel(StateLayout(state).channel(channel_for(name))))
            text = set_aside_text(kinds, reasons)
            found.append(
                SetAsideAnswer(
                    stream=name,
                    rows=kinds,
                    reasons=reasons,
                    folder=str(letters.folder),
                    nothing_read=nothing,
                    text=f"nothing could be read: {text}" if nothing else text,
                )
            )
    return found


def letters_answer(state: Path, stream: str, last: int) -> list[LetterAnswer]:
    """The latest rows of a stream that could not be used, oldest first."""
    return [
        LetterAnswer.model_validate(letter) for letter in letters_of(state, stream).newest(last)
    ]


def is_news(told: Counts, now: Counts) -> bool:
    """Whether to tell of these counts: a kind is new, or has at least doubled since.

    >>> [is_news({"late": 2}, {"late": n}) for n in (2, 3, 4)], is_news({}, {"late": 1})
    ([False, False, True], True)
    """
    return any(n >= max(1, 2 * told.get(kind, 0)) for kind, n in now.items())
