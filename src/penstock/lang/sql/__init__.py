"""Queries as SQL: text to operators, and operators back to text."""

from penstock.lang.sql.expression_text import expression_sql
from penstock.lang.sql.parse import parse_aggregate, parse_expression, parse_query, references
from penstock.lang.sql.query_text import query_sql
from penstock.lang.sql.records import KnownNames, ParsedQuery

__all__ = [
    "KnownNames",
    "ParsedQuery",
    "expression_sql",
    "parse_aggregate",
    "parse_expression",
    "parse_query",
    "query_sql",
    "references",
]
