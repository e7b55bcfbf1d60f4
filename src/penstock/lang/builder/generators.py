"""Generators of rows, as in ``ps.generate.meters(homes=300, days=1)``."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import InputError
from penstock.model.sources import GeneratorSource


@dataclass(frozen=True)
class Generators:
    """The generators by name; names with a dot are reached dot by dot.

    >>> generate.meters(homes=300, days=1).options["homes"]
    300
    >>> generate.nexmark.bids(rate=1_000, speedup=1).generator
    'nexmark.bids'
    """

    name: str = ""

    def __getattr__(self, part: str) -> Generators:
        if part.startswith("_"):
            raise AttributeError(part)
        return Generators(f"{self.name}.{part}".lstrip("."))

    def __call__(self, *given: object, **options: object) -> GeneratorSource:
        """A source of generated rows; raises if there is no such generator or option."""
        if given:
            raise InputError(
                f"generate is called with {given[0]!r}",
                hint="Write ps.generate.meters(homes=300): its name, then its options by name.",
            )
        # Imported here because feeds bring Arrow along, and importing penstock is to be cheap.
        from penstock.feeds.generators import generator

        generator(self.name, options)
        return GeneratorSource(self.name, options)


generate = Generators()
