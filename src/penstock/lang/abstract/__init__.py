"""Abstract networks as people write them, in YAML or JSON."""

from penstock.lang.abstract.reading import is_abstract, parse_abstract, read_abstract

__all__ = ["is_abstract", "parse_abstract", "read_abstract"]
