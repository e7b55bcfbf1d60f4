"""What nodes send to each other, on the wire: who says it, to whom, and what."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from penstock.balance.hierarchy.messages import NegotiationMessage
from penstock.control.load_gossip import Load, LoadsHeard, Word
from penstock.errors import InputError

LETTER_AT_MOST_BYTES = 256 << 10
_NAME_AT_MOST = 200
_WORDS_AT_MOST = 1_000

Name = Annotated[str, Field(min_length=1, max_length=_NAME_AT_MOST)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class WordSent(_Strict):
    """What is known of one node."""

    life: Annotated[str, Field(max_length=40)]
    count: Annotated[int, Field(ge=0)]
    cpu: Annotated[float, Field(ge=0.0)]
    memory_bytes: Annotated[int, Field(ge=0)]
    age_s: Annotated[float, Field(ge=0.0)]

    @classmethod
    def of(cls, word: Word) -> WordSent:
        load = word.load
        return cls(
            life=word.life,
            count=word.count,
            cpu=load.cpu,
            memory_bytes=load.memory_bytes,
            age_s=max(0.0, word.age_s),
        )


class Letter(_Strict):
    """A message between nodes: word of loads, or a part of a negotiation.

    ``life`` is the incarnation of the sender.
    """

    sender: Name
    life: Annotated[str, Field(min_length=1, max_length=40)]
    to: Name
    loads: Annotated[dict[Name, WordSent], Field(max_length=_WORDS_AT_MOST)] = {}
    negotiation: dict[str, Any] | None = None

    def event(self) -> LoadsHeard:
        """What the protocol is told."""
        return LoadsHeard(
            {
                node: Word(word.life, word.count, Load(word.cpu, word.memory_bytes), word.age_s)
                for node, word in self.loads.items()
            }
        )


def read_letter(body: bytes) -> Letter:
    """A letter as it came; raises if it is none."""
    if len(body) > LETTER_AT_MOST_BYTES:
        raise InputError(
            f"a message of {len(body)} bytes",
            hint=f"Messages between nodes have at most {LETTER_AT_MOST_BYTES}.",
        )
    try:
        letter = Letter.model_validate_json(body)
        if letter.negotiation is not None:
            NegotiationMessage.of_record(letter.negotiation)
        return letter
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise InputError(f"no message between nodes: {where}: {first['msg']}") from None
