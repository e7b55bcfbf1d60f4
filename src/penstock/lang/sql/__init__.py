"""Queries as SQL: text to operators, and operators back to text."""

from penstock.lang.sql.parse import parse_aggregate, parse_expression, parse_query, references
from penstock.lang.sql.records import Catalog, ParsedQuery

__all__ = [
    "Catalog",
    "ParsedQuery",
    "parse_aggregate",
    "parse_expression",
    "parse_query",
    "references",
]
