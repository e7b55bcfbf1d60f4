"""Abstract networks and trees of nodes as people write them, in YAML or JSON."""

from penstock.lang.abstract.reading import (
    abstract_in,
    is_abstract,
    parse_abstract,
    read_abstract,
)
from penstock.lang.abstract.tree import parse_tree, read_tree, tree_in

__all__ = [
    "abstract_in",
    "is_abstract",
    "parse_abstract",
    "parse_tree",
    "read_abstract",
    "read_tree",
    "tree_in",
]
