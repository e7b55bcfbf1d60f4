"""Manifests: as text and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.channels.manifest import ChannelFile, Manifest
from penstock.errors import RunError

pytestmark = pytest.mark.core

FULL = Manifest(
    3, 2, 7, (ChannelFile("a.parquet", 5, 50), ChannelFile("b.parquet", 6, 60)), 123, True
)
numbers = st.integers(0, 2**62)
manifests = st.builds(
    Manifest,
    numbers,
    numbers,
    numbers,
    st.lists(st.builds(ChannelFile, st.text(max_size=9), numbers), max_size=3).map(tuple),
    st.none() | numbers,
    st.booleans(),
    st.dictionaries(st.text(max_size=5), st.none() | numbers | st.text(max_size=5)),
)


@settings(database=None, deadline=None)
@given(manifest=manifests)
def test_a_manifest_reads_back(manifest: Manifest) -> None:
    assert Manifest.from_json(manifest.to_json(), "x") == manifest


def test_rows_are_those_of_all_files() -> None:
    assert FULL.rows == 11
    assert Manifest(0, 0, 0).rows == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        "{}",
        json.dumps({"files": []}),
        json.dumps({"files": [3], "sequence": 0, "epoch": 0, "batch_id": 0}),
        FULL.to_json()[:-10],
        FULL.to_json().replace("sequence", "sequenz"),
    ],
)
def test_a_damaged_manifest_is_refused_by_the_name_of_its_file(text: str) -> None:
    with pytest.raises(RunError) as caught:
        Manifest.from_json(text, "/state/channels/a/log/00000003.json")
    message = str(caught.value)
    assert message.startswith("the manifest /state/channels/a/log/00000003.json is damaged (")
    assert message.endswith("). Restore the file from a backup, or start afresh with --fresh.")


def test_a_manifest_of_which_any_bit_has_changed_is_refused() -> None:
    whole = FULL.to_json().encode()
    for at in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        text = changed.decode(errors="replace")
        with pytest.raises(RunError, match="the manifest x is damaged"):
            Manifest.from_json(text, "x")
