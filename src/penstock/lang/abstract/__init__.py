"""Abstract networks as people write them, in YAML or JSON."""

from penstock.lang.abstract.reading import (
    abstract_in,
    is_abstract,
    parse_abstract,
    read_abstract,
)

__all__ = ["abstract_in", "is_abstract", "parse_abstract", "read_abstract"]
