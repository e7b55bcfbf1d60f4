"""Numbers, lengths of time, sizes and values as people read them in a terminal."""

from __future__ import annotations

from datetime import UTC, date, datetime

_FAR_FUTURE_MS = 13_000 * 365 * 86_400 * 1_000
"""No event and no window lies beyond; the time of a stream that has ended does."""


def count(number: float) -> str:
    """A whole number, grouped.

    >>> count(161200), count(12.6)
    ('161,200', '13')
    """
    return f"{number:,.0f}"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "query"), counted(3, "query"), counted(0, "row")
    ('1 query', '3 queries', '0 rows')
    """
    many = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{count(number)} {noun if number == 1 else many}"


def span(seconds: float) -> str:
    """A length of time in at most two units.

    >>> span(3.42), span(31.7), span(130), span(7_500), span(200_000)
    ('3.4 s', '32 s', '2 min 10 s', '2 h 5 min', '2 days 7 h')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    days, hours, minutes, rest = (
        whole // 86_400,
        whole // 3_600 % 24,
        whole // 60 % 60,
        whole % 60,
    )
    if days:
        return f"{counted(days, 'day')} {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def size(octets: float) -> str:
    """An amount of memory or disk.

    >>> size(640_000_000), size(1_234_000_000), size(999_600), size(0)
    ('640 MB', '1.2 GB', '1 MB', '0 MB')
    """
    megabytes = octets / 1e6
    return f"{megabytes / 1_000:,.1f} GB" if megabytes >= 999.5 else f"{megabytes:.0f} MB"


def moment(ms: int | None) -> str:
    """An event time given in milliseconds since 1970; ``end`` once there is no more to come.

    >>> moment(1_767_594_600_000), moment(None), moment(568_025_136_000_000)
    ('2026-01-05 06:30:00', '', 'end')
    >>> moment(-11_670_998_400_000), moment(253_402_300_800_000)
    ('1600-02-29 00:00:00', '10000-01-01 00:00:00')
    """
    if ms is None:
        return ""
    if ms >= _FAR_FUTURE_MS:
        return "end"
    import numpy as np  # here: commands that show no times start without it

    # Python's own dates begin with the year 1 and end with the year 9999.
    return str(np.datetime64(ms // 1_000, "s")).replace("T", " ")


def cell(value: object) -> str:
    """A value of a result row, on one line and harmless to a terminal.

    >>> cell(9.4213123), cell(None), cell(datetime(2026, 1, 5, 6, 30, tzinfo=UTC)), cell(True)
    ('9.42131', 'null', '2026-01-05 06:30:00', 'true')
    >>> cell("a" + chr(27) + "[31m")
    'a\\\\x1b[31m'
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.6g}"
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
        case date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case _:
            return printable(str(value))


def printable(text: str) -> str:
    """The text with everything that could steer a terminal written out."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
