"""Records as JSON text and back: what lies in the catalog is read as what it is, or refused."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from penstock.errors import RunError

Record = TypeVar("Record")


class Codec(Generic[Record]):
    """Writes records of one type as JSON and reads them; made ready when it is first used.

    Dataclasses are written by their fields. Fields that are missing in a text take their defaults,
    and those that are not known any more are passed over, so that what an earlier version wrote can
    be read.

    >>> from penstock.model.measurements import IntakeSample
    >>> codec = Codec(IntakeSample)
    >>> codec.encode(IntakeSample(2.5)), codec.decode('{"cpu_ms": 2.5}')
    ('{"cpu_ms":2.5}', IntakeSample(cpu_ms=2.5))
    """

    def __init__(self, kind: type[Record] | Any) -> None:
        self._kind = kind

    @cached_property
    def _adapter(self) -> TypeAdapter[Record]:
        return TypeAdapter(self._kind)

    def encode(self, record: Record) -> str:
        """The record as JSON."""
        return self._adapter.dump_json(record).decode()

    def decode(self, text: str | bytes) -> Record:
        """The record in a text; raises if it is none."""
        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            name = getattr(self._kind, "__name__", str(self._kind))
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise RunError(
                f"what should be a {name} cannot be read: {place} {first['msg']}".replace(
                    "  ", " "
                ),
                hint="It is damaged, or another version of Penstock has written it.",
            ) from None
