"""From text to a syntax tree: the dialect, and syntax errors in our words.

The dialect is Spark's with one change: function calls stay as they were written. sqlglot would
turn many of them into classes of its own with arguments of its own; here a function is its name,
looked up in one table (see :mod:`penstock.lang.sql.functions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import InputError, Place, listed, suggestion
from penstock.lang.sql.places import WrittenText
from penstock.model.types import STORABLE

_OWN_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT")


class _Parser(SparkParser):
    FUNCTIONS = {}  # noqa: RUF012 - declared as a class variable by sqlglot
    NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
    FUNCTION_PARSERS = {  # noqa: RUF012
        name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name in _OWN_GRAMMAR
    }

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        """An interval that knows where it was written, as sqlglot's other constants do."""
        first = self._curr
        interval = super()._parse_interval(require_interval, parse_function_unit)
        if interval is not None:
            interval.meta.update(start=first.start, end=self._prev.end)
        return interval

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        """A type that knows how it was written: sqlglot takes one for another where Spark does."""
        first = self._curr
        type = super()._parse_types(check_func, schema, allow_identifiers, with_collation)
        if type is not None and first is not None:
            type.meta["written"] = self._type_name(first)
        return type

    def _type_name(self, first: Token) -> str:
        text = self.sql[first.start : self._prev.end + 1]
        suffix = first.text.upper()
        # The suffix of a number, as in 10Y, is a token of its own in the place of the whole number.
        is_suffix = text[:1].isdigit() or text.startswith(".")
        return Spark.Tokenizer.NUMERIC_LITERALS[suffix].lower() if is_suffix else text


def type_name(node: exp.Expr) -> str:
    """The name of a type as it was written."""
    return str(node.meta.get("written") or node.sql(DIALECT))


class _Generator(SparkGenerator):
    """Prints NOT where people write it, and constant times as constants."""

    def not_sql(self, expression: exp.Not) -> str:
        inner = expression.this
        if isinstance(inner, exp.In | exp.Like | exp.RegexpLike | exp.Is):
            operand = self.sql(inner, "this")
            rest = self.sql(inner)[len(operand) :]
            is_null = rest.startswith(" IS ")
            return f"{operand} IS NOT{rest[3:]}" if is_null else f"{operand} NOT{rest}"
        return super().not_sql(expression)

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        if isinstance(expression, exp.TryCast):
            return super().cast_sql(expression, safe_prefix)
        return f"{self.sql(expression, 'to')} {self.sql(expression, 'this')}"


class PenstockSql(Spark):
    """Spark's SQL with plain function calls and, as in Spark 4, a doubled quote in strings."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'"]  # noqa: RUF012
        # Without this GROUP BY window(…) reads as the WINDOW clause of OVER, which we refuse.
        KEYWORDS = {  # noqa: RUF012
            word: type for word, type in Spark.Tokenizer.KEYWORDS.items() if word != "WINDOW"
        }

    Parser = _Parser
    Generator = _Generator


DIALECT = PenstockSql()

_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.INSERT, TokenType.FROM, TokenType.L_PAREN)
_ESCAPE = re.compile(
    r"\\(?:([\\'\"nrtb0Z%_]|[0-3][0-7]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|.)", re.DOTALL
)
_AFTER_NO_COMMA = (TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.WHERE)
_KEYWORDS = ("FROM", "WHERE", "GROUP", "HAVING", "JOIN", "LEFT", "INNER", "UNION", "SELECT")


def parse_statement(written: WrittenText) -> exp.Expr:
    """The syntax tree of the one query in a text."""
    tokens = _tokens(written)
    if tokens[0].token_type not in _STARTS:
        raise InputError(
            f"a query cannot begin with {tokens[0].text}",
            hint="Begin with SELECT, WITH or INSERT INTO.",
            place=_token_place(written, tokens[0]),
        )
    _check_commas(written, tokens)
    statements = [
        expression for expression in _parsed(written, tokens, None) if expression is not None
    ]
    if len(statements) != 1:
        raise InputError(
            f"{len(statements)} queries in one text",
            hint="Give each query its own name and text.",
            place=_second_statement(written, tokens),
        )
    return statements[0]


def parse_condition(written: WrittenText) -> exp.Expr:
    """The syntax tree of the one expression in a text."""
    (tree,) = _parsed(written, _tokens(written, "an expression"), exp.Condition)
    assert tree is not None
    return tree


def is_plain_name(name: str) -> bool:
    """Whether a name is read as a name without quotes around it.

    >>> is_plain_name("home"), is_plain_name("from")
    (True, False)
    """
    tokens = list(DIALECT.tokenize(name))
    is_name = len(tokens) == 1 and tokens[0].token_type is TokenType.VAR
    return is_name and name.upper() not in SparkParser.NO_PAREN_FUNCTION_PARSERS


def _tokens(written: WrittenText, what: str = "a query") -> list[Token]:
    try:
        tokens = list(DIALECT.tokenize(written.text))
    except TokenError as error:
        raise _unclosed(written, error) from None
    if not [lexeme for lexeme in tokens if lexeme.token_type is not TokenType.SEMICOLON]:
        raise InputError(f"{what} without text", hint="Write one.", place=written.at(0))
    for token in tokens:
        if token.token_type is TokenType.STRING:
            _check_escapes(written, token)
    return tokens


def _check_escapes(written: WrittenText, token: Token) -> None:
    """A backslash that stands for nothing would vanish, and a pattern match something else."""
    text = written.text[token.start : token.end + 1]
    for escape in _ESCAPE.finditer(text):
        if escape[1] is None:
            raise InputError(
                f"{escape[0]} stands for nothing in a text",
                hint=f"Write \\{escape[0]} for a backslash and {escape[0][1:]}.",
                place=written.at(token.start + escape.start(), len(escape[0])),
            )


def _parsed(
    written: WrittenText, tokens: list[Token], into: type[exp.Expr] | None
) -> list[exp.Expr | None]:
    parser = DIALECT.parser()
    try:
        with not_too_deep(written):
            if into is not None:
                return parser.parse_into(into, tokens, written.text)
            return parser.parse(tokens, written.text)
    except ParseError as error:
        raise _syntax_error(written, error) from None


@contextmanager
def not_too_deep(written: WrittenText) -> Iterator[None]:
    """Turns running out of stack on a deeply nested text into an error about that text."""
    try:
        yield
    except RecursionError:
        raise InputError(
            "the text is nested too deeply", hint="Split it with WITH.", place=written.at(0)
        ) from None


def _check_commas(written: WrittenText, tokens: list[Token]) -> None:
    """sqlglot forgives a comma too many; a column forgotten between two would go unnoticed."""
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        ends = following is None or following.token_type in _AFTER_NO_COMMA
        if token.token_type is TokenType.COMMA and ends:
            raise InputError(
                "nothing follows this comma", hint="Remove it.", place=_token_place(written, token)
            )


def _token_place(written: WrittenText, token: Token) -> Place:
    return written.at(token.start, token.end - token.start + 1)


def _second_statement(written: WrittenText, tokens: list[Token]) -> Place:
    types = [token.token_type for token in tokens]
    return _token_place(written, tokens[types.index(TokenType.SEMICOLON) + 1])


def _unclosed(written: WrittenText, error: TokenError) -> InputError:
    text = written.text
    marks = [(text.rfind(mark), mark) for mark in ("'", '"', "`", "/*")]
    at, mark = max(marks)
    if at < 0 or error.start is None:
        return InputError("the text cannot be read", place=written.at(0))
    names = {"`": "a quoted name", "/*": "a comment"}
    return InputError(
        f"{names.get(mark, 'a string')} is not closed",
        hint=f"Add the closing {'*/' if mark == '/*' else mark}.",
        place=written.at(at, len(mark)),
    )


def _syntax_error(written: WrittenText, error: ParseError) -> InputError:
    if not error.errors:
        return InputError("the text cannot be read", place=written.at(0))
    first = error.errors[0]
    token = str(first["highlight"] or "")
    lines = written.text.splitlines(keepends=True)
    start = sum(map(len, lines[: first["line"] - 1])) + first["col"] - len(token)
    what = _in_our_words(str(first["description"]), token, not first["end_context"])
    odd = what.endswith("no sense here")
    hint = _misspelt(written.text[: max(0, start)], token) if odd else ""
    return InputError(what, hint=hint, place=written.at(max(0, start), len(token)))


def _misspelt(before: str, token: str) -> str:
    """A mistyped keyword usually reads as an alias, and the word after it is what is odd."""
    for word in (*before.split()[-1:], token):
        if word.isalpha() and word.upper() not in _KEYWORDS and suggestion(word, _KEYWORDS):
            return suggestion(word, _KEYWORDS)
    return ""


def _in_our_words(description: str, token: str, at_end: bool) -> str:
    expecting = re.fullmatch(r"Expecting (\S+)", description)
    if expecting:
        where = "after" if at_end else "before"
        return f"a {expecting.group(1)} is missing {where} {token}"
    if description.startswith("Expected END"):
        return "this CASE has no END"
    if description.startswith("Expected TYPE"):
        what = f"{token} is not a type" if token.isidentifier() else "a type is missing here"
        return f"{what}; there are {listed(map(str, STORABLE))}"
    if "table name" in description or "Required keyword" in description or "Failed" in description:
        return f"something is missing after {token}"
    return f"{token} makes no sense here"
