"""The functions of Python operators: where they are found, and what they may not do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.spark.user_functions import check_same_times, user_function

pytestmark = pytest.mark.core

TIME = pa.timestamp("us", tz="UTC")
BATCH = pa.RecordBatch.from_pydict({"n": [1, 2]})


def test_a_module_beside_the_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "first_two.py").write_text(
        "from its_helper import keep\n\n\ndef two(b): return keep(b)\n"
    )
    (tmp_path / "its_helper.py").write_text("def keep(batch): return batch.slice(0, 1)\n")
    function = user_function("first_two:two", tmp_path)
    assert function(BATCH) == BATCH.slice(0, 1)


def test_modules_of_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    given = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "same_name.py").write_text(f"def rows(batch): return batch.slice(0, {number})\n")
        given.append(user_function("same_name:rows", folder)(BATCH))
    assert [one.num_rows for one in given] == [1, 2]


def test_installed_modules_are_found_where_none_lies_beside(tmp_path: Path) -> None:
    assert user_function("math:sqrt", tmp_path)(9) == 3.0  # type: ignore[arg-type, comparison-overlap]


def test_a_function_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "cleaner.py").write_text("x = 1\n")
    with pytest.raises(InputError, match="the Python operator cleaner:wash cannot be loaded"):
        user_function("cleaner:wash", tmp_path)


def test_rows_keep_the_event_times_they_came_with() -> None:
    taken = pa.array([1, 2, 2, None], TIME)
    check_same_times("m:f", pa.chunked_array([pa.array([2, 1, 1, None], TIME)]), taken)
    check_same_times("m:f", pa.chunked_array([pa.array([], TIME)]), taken)
    with pytest.raises(InputError) as caught:
        check_same_times("m:f", pa.chunked_array([pa.array([2, 3_000_000], TIME)]), taken)
    assert str(caught.value) == (
        "the Python operator m:f gives a row the event time 1970-01-01 00:00:03+00:00, which none "
        "of the rows it took has. Pass the event time on as it is; a changed time can go into a "
        "column of its own."
    )
    with pytest.raises(InputError, match="the event time None"):
        check_same_times("m:f", pa.chunked_array([pa.array([None], TIME)]), pa.array([1], TIME))
