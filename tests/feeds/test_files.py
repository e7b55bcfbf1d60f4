"""Reading files of any format: in little memory, refused by name if damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from feeds.reading import PLAIN, SCHEMA, parquet, refusal, written
from penstock.feeds.files import read_pieces
from penstock.feeds.pieces import Reject
from penstock.model.schema import Schema
from penstock.model.sources import CsvLayout, FileFormat


def most_bytes_at_once(path: Path, format: FileFormat) -> int:
    before, most = pa.total_allocated_bytes(), 0
    for piece in read_pieces(path, format, PLAIN, SCHEMA):
        most = max(most, pa.total_allocated_bytes() - before)
        assert piece.rows.num_rows < 1_000
    return most


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.jsonl.gz"])
def test_memory_is_bounded_by_a_piece(tmp_path: Path, small_blocks: int, name: str) -> None:
    """Twenty times as much to read takes no more at a time."""
    format: FileFormat = "json" if "json" in name else "csv"
    head, row = ("", '{"home": "a"}\n') if format == "json" else ("home,kwh\n", "a,1.5\n")
    small, large = (
        most_bytes_at_once(written(tmp_path, head + row * count, name), format)
        for count in (1_000, 20_000)
    )
    assert large < small + 32 * small_blocks


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_file_that_is_not_there(tmp_path: Path, format: FileFormat) -> None:
    path = tmp_path / "a.csv"
    assert refusal(path, format) == f"no file {path}. Check the path."


def _truncated(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


def _flipped(raw: bytes) -> bytes:
    middle = len(raw) // 2
    return raw[:middle] + bytes([raw[middle] ^ 0xFF]) * 8 + raw[middle + 8 :]


@pytest.mark.parametrize("damage", [_truncated, _flipped])
@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.parquet"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, name: str, damage: object) -> None:
    rows = [f"home{at},{at}" for at in range(5_000)]
    if name == "a.parquet":
        path = parquet(tmp_path, home=pa.array(rows), kwh=pa.array([1.0] * len(rows)))
    else:
        as_json = [json.dumps({"home": row}) for row in rows]
        head = ["home,kwh"] if "csv" in name else []
        path = written(tmp_path, "\n".join(head + (rows if head else as_json)), name)
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    format: FileFormat = "csv" if "csv" in name else "json" if "json" in name else "parquet"
    message = refusal(path, format)
    assert message.startswith(f"{path} cannot be read as {format}: ")
    assert message.endswith(". Check that the file is whole and of that format.")
    assert "\n" not in message


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "home,kwh\na,1\n", "a.parquet")
    assert refusal(path, "parquet").startswith(f"{path} cannot be read as parquet: ")


def test_a_reject_is_one_line_of_json() -> None:
    reject = Reject("a.csv", 3, "kwh: 'x' is no double", '"two\nlines",x')
    assert json.loads(reject.to_json()) == {
        "file": "a.csv",
        "line": 3,
        "reason": "kwh: 'x' is no double",
        "row": '"two\nlines",x',
    }
    assert "\n" not in reject.to_json()


DATA = Path(__file__).parents[3] / "shared" / "data"
RECORDINGS = [
    (
        "net_wrccdc2018_zeek_dns.tsv.gz",
        CsvLayout("\t", null="-"),
        "ts timestamp, uid string, rtt double, query string",
        53_615,
        0,
    ),
    (
        "net_wrccdc2018_zeek_weird.tsv.gz",
        CsvLayout("\t", null="-"),
        "ts timestamp, uid string, name string",
        24_202,
        0,
    ),
    (
        "http_worldcup98_per_minute.csv.gz",
        CsvLayout(),
        "timestamp timestamp, num_request bigint",
        125_300,
        0,
    ),
    (
        # A log, not a table: some requests have blanks too many, some bytes are Latin-1.
        "http_epa1995_full.log.gz",
        CsvLayout(" ", header=False, null="-"),
        "host string, at string, request string, status int, bytes int",
        47_748,
        21,
    ),
]


@pytest.mark.skipif(not DATA.is_dir(), reason="the recordings beside the project are not there")
@pytest.mark.parametrize(("name", "layout", "columns", "rows", "rejects"), RECORDINGS)
def test_real_recordings(
    name: str, layout: CsvLayout, columns: str, rows: int, rejects: int
) -> None:
    pieces = list(read_pieces(DATA / name, "csv", layout, Schema.parse(columns)))
    assert sum(piece.rows.num_rows + len(piece.rejects) for piece in pieces) == rows
    assert sum(len(piece.rejects) for piece in pieces) == rejects
