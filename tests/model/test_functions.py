"""The type rules of functions, as a table."""

import pytest

from penstock.errors import InputError
from penstock.model.functions import FUNCTIONS, result_type
from penstock.model.types import DataType

RULES = """
+               int int                     int
+               int bigint                  bigint
+               bigint double               double
+               int null                    int
+               null double                 double
+               timestamp interval          timestamp
+               date interval               timestamp
+               interval timestamp          timestamp
+               interval date               timestamp
+               interval interval           interval
+               null null                   -
+               timestamp timestamp         -
+               string string               -
+               int string                  -
+               int                         -
+               int int int                 -
-               int bigint                  bigint
-               timestamp timestamp         interval
-               timestamp interval          timestamp
-               date interval               timestamp
-               interval interval           interval
-               interval timestamp          -
-               interval date               -
-               date date                   -
-               string int                  -
*               int int                     int
*               double int                  double
*               interval int                -
/               int int                     double
/               int double                  double
/               null int                    double
/               string int                  -
%               bigint int                  bigint
%               double double               double
%               boolean int                 -
negate          int                         int
negate          double                      double
negate          interval                    interval
negate          null                        -
negate          string                      -
=               int double                  boolean
=               null null                   boolean
=               date timestamp              boolean
=               string timestamp            -
<>              binary binary               boolean
<>              int boolean                 -
<               string string               boolean
<               interval interval           boolean
<               string int                  -
<=              timestamp timestamp         boolean
<=              double string               -
>               int null                    boolean
>               int int int                 -
>=              boolean boolean             boolean
>=              boolean int                 -
<=>             null int                    boolean
<=>             string int                  -
and             boolean boolean             boolean
and             boolean null                boolean
and             boolean int                 -
or              null null                   boolean
or              string boolean              -
not             boolean                     boolean
not             null                        boolean
not             int                         -
is_null         interval                    boolean
is_null         null                        boolean
is_null         int int                     -
in              int int bigint double       boolean
in              string null string          boolean
in              null int int                boolean
in              null int string             -
in              int string                  -
in              int                         -
like            string string               boolean
like            string null                 boolean
like            string int                  -
rlike           string string               boolean
rlike           int string                  -
coalesce        int bigint double           double
coalesce        null null                   null
coalesce        null string                 string
coalesce        int                         int
coalesce        int string                  -
if              boolean int double          double
if              null date timestamp         timestamp
if              boolean null string         string
if              int int int                 -
if              boolean int string          -
if              boolean int                 -
nullif          int double                  int
nullif          string null                 string
nullif          int string                  -
greatest        int double                  double
greatest        null date                   date
greatest        int                         -
greatest        int string                  -
least           timestamp date              timestamp
least           string                      -
least           string int                  -
abs             int                         int
abs             double                      double
abs             interval                    -
abs             null                        -
sign            int                         double
sign            null                        double
sign            string                      -
round           double                      double
round           int int                     int
round           bigint null                 bigint
round           double bigint               -
round           string                      -
round           double int int              -
floor           double                      bigint
floor           int                         bigint
floor           string                      -
ceil            double                      bigint
ceil            null                        bigint
ceil            timestamp                   -
sqrt            int                         double
sqrt            string                      -
exp             double                      double
exp             double double               -
ln              bigint                      double
ln              boolean                     -
log10           double                      double
log10           string                      -
power           int double                  double
power           double                      -
lower           string                      string
lower           null                        string
lower           int                         -
upper           string                      string
upper           binary                      -
trim            string                      string
trim            string string               -
length          string                      int
length          binary                      -
concat          string                      string
concat          string null string          string
concat          string int                  -
substring       string int                  string
substring       string int int              string
substring       string bigint               -
substring       string                      -
replace         string string string        string
replace         string string               -
split_part      string string int           string
split_part      string string               -
regexp_extract  string string               string
regexp_extract  string string int           string
regexp_extract  string                      -
startswith      string string               boolean
startswith      string                      -
endswith        string string               boolean
endswith        string int                  -
contains        string string               boolean
contains        string string string        -
md5             string                      string
md5             int                         -
year            timestamp                   int
year            date                        int
year            null                        -
year            string                      -
month           date                        int
month           int                         -
day             timestamp                   int
day             interval                    -
dayofweek       date                        int
dayofweek       string                      -
hour            timestamp                   int
hour            date                        int
hour            null                        int
hour            string                      -
minute          timestamp                   int
minute          int                         -
second          timestamp                   int
second          interval                    -
date_trunc      string timestamp            timestamp
date_trunc      string date                 timestamp
date_trunc      timestamp string            -
date_format     timestamp string            string
date_format     string string               -
to_date         timestamp                   date
to_date         date                        date
to_date         string                      -
unix_micros     timestamp                   bigint
unix_micros     int                         -
unix_seconds    date                        bigint
unix_seconds    double                      -
timestamp_seconds double                    timestamp
timestamp_seconds int                       timestamp
timestamp_seconds string                    -
timestamp_millis bigint                     timestamp
timestamp_millis double                     -
timestamp_micros int                        timestamp
timestamp_micros string                     -
unix_millis timestamp                       bigint
unix_millis int                             -
to_timestamp string string                  timestamp
to_timestamp string                         -
"""


def rules() -> list[tuple[str, list[DataType], DataType | None]]:
    found = []
    for line in RULES.strip().splitlines():
        function, *types, result = line.split()
        given = [DataType(type_) for type_ in types]
        found.append((function, given, None if result == "-" else DataType(result)))
    return found


@pytest.mark.parametrize(("function", "types", "result"), rules())
def test_rule(function: str, types: list[DataType], result: DataType | None) -> None:
    if result is not None:
        assert result_type(function, types) is result
        return
    with pytest.raises(InputError) as caught:
        result_type(function, types)
    given = ", ".join(map(str, types))
    assert caught.value.what == f"{function} takes {FUNCTIONS[function].takes}; it got {given}"


def test_what_cannot_be_compared_can_be_converted() -> None:
    with pytest.raises(InputError) as caught:
        result_type("=", [DataType.STRING, DataType.BIGINT])
    assert caught.value.hint == "Convert one of them, for example by CAST(… AS string)."
    with pytest.raises(InputError) as caught:
        result_type("<", [DataType.INTERVAL, DataType.BIGINT])
    assert caught.value.hint == ""


def test_every_function_has_a_rule_that_fits_and_one_that_does_not() -> None:
    assert {one for one, _, result in rules() if result is not None} == set(FUNCTIONS)
    assert {one for one, _, result in rules() if result is None} | {"is_null"} == set(FUNCTIONS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_goes_without_arguments(function: str) -> None:
    with pytest.raises(InputError) as caught:
        result_type(function, [])
    assert str(caught.value) == f"{function} takes {FUNCTIONS[function].takes}; it got none"


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        ("+", "two numbers, or a timestamp and an interval"),
        ("in", "a value and a list of values of its type"),
        ("greatest", "two or more values of one type"),
        ("substring", "a string, a start and a length"),
        ("timestamp_seconds", "seconds since 1970"),
    ],
)
def test_what_a_function_takes_in_words(function: str, takes: str) -> None:
    assert FUNCTIONS[function].takes == takes
