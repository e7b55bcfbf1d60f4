"""Packets: the exact rate, bursts, few busy hosts, sizes of two kinds."""

from ipaddress import ip_address, ip_network

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.errors import InputError
from penstock.feeds.packets import Packets

FEED = Packets(rate_per_s=1_000, seconds=200, seed=5, disorder_s=0.1)
ROWS = FEED.read(0, FEED.size or 0)


def shares(column: pa.ChunkedArray) -> dict[object, float]:
    counted = pc.value_counts(column)
    return {entry["values"].as_py(): entry["counts"].as_py() / len(column) for entry in counted}


def test_the_rate_is_exact_over_the_whole() -> None:
    assert FEED.size == 200_000
    times_us = ROWS["ts"].cast(pa.int64()).to_numpy()
    assert times_us.max() - times_us.min() == pytest.approx(200e6, rel=0.02)


def test_the_rate_is_exact_over_many_blocks() -> None:
    assert Packets(rate_per_s=10, seconds=7 * 86_400).size == pytest.approx(6_048_000, abs=10)
    endless = Packets(rate_per_s=1_000, speedup=1)
    for days in (3, 30, 3_000):
        assert endless.due(days * 86_400) == pytest.approx(days * 86_400_000, rel=0.3 / days)


def test_blocks_follow_each_other_without_a_gap() -> None:
    feed = Packets(rate_per_s=0.1, seconds=3 * 86_400, seed=1)
    times_us = feed.read(0, feed.size or 0)["ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(times_us) >= 0).all()
    assert times_us[-1] - times_us[0] == pytest.approx(3 * 86_400e6, rel=0.05)


def test_seconds_are_bursty() -> None:
    times_us = ROWS["ts"].cast(pa.int64()).to_numpy()
    per_second = np.bincount((times_us - times_us.min()) // 1_000_000)
    # Poisson arrivals would vary by 32 around the mean of 1000.
    assert per_second.std() > 150


def test_addresses_are_private_and_distinct() -> None:
    everyone = Packets(rate_per_s=10_000, seconds=10, hosts=500, skew=0)
    rows = everyone.read(0, 100_000)
    senders, receivers = pc.unique(rows["src"]), pc.unique(rows["dst"])
    assert len(senders) == len(receivers) == 500
    assert all(ip_address(sender) in ip_network("10.0.0.0/8") for sender in senders.to_pylist())
    assert set(senders.to_pylist()) == set(receivers.to_pylist())


def test_nobody_sends_to_itself() -> None:
    rows = Packets(rate_per_s=1_000, seconds=5, hosts=2).read(0, 5_000)
    assert not pc.any(pc.equal(rows["src"], rows["dst"])).as_py()


def test_hosts_follow_zipf() -> None:
    weights = np.arange(1, 1_001) ** -1.1
    expected = weights / weights.sum()
    for column in ("src", "dst"):
        found = sorted(shares(ROWS[column]).values(), reverse=True)
        assert found[:3] == pytest.approx(expected[:3], rel=0.1)
        assert sum(found[:100]) == pytest.approx(expected[:100].sum(), rel=0.03)


def test_who_sends_much_need_not_receive_much() -> None:
    sent, received = shares(ROWS["src"]), shares(ROWS["dst"])
    assert max(sent, key=sent.__getitem__) != max(received, key=received.__getitem__)


def test_protocols() -> None:
    assert shares(ROWS["protocol"]) == pytest.approx(
        {"tcp": 212 / 256, "udp": 40 / 256, "icmp": 4 / 256}, rel=0.05
    )


def test_sizes_are_small_or_full() -> None:
    size = ROWS["bytes"].to_numpy()
    assert size.min() == 40 and size.max() == 1_500
    small, full = (size <= 100).mean(), (size >= 1_400).mean()
    assert small > 0.4 and full > 0.3 and small + full > 0.7
    icmp = ROWS.filter(pc.equal(ROWS["protocol"], "icmp"))["bytes"].to_numpy()
    assert np.median(icmp) <= 84


def test_rows_never_change() -> None:
    feed = Packets(rate_per_s=1_000, seconds=60, seed=7, disorder_s=0.1)
    found = feed.read(1_000, 1_003).to_pylist()
    assert [", ".join(map(str, row.values())) for row in found] == [
        "2026-01-05 00:00:01.835050+00:00, 10.117.98.194, 10.206.166.31, udp, 169",
        "2026-01-05 00:00:01.854958+00:00, 10.111.173.232, 10.58.217.31, tcp, 1428",
        "2026-01-05 00:00:01.856455+00:00, 10.151.71.232, 10.103.214.250, tcp, 1059",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate_per_s": 0}, "the rate of packets per second must be a number above 0; got 0"),
        (
            {"hurst": 0.5},
            "the Hurst parameter must lie between 0.5 and 1; got 0.5. "
            "0.5 would be without bursts, measured networks show 0.7 to 0.9.",
        ),
        ({"hosts": 1}, "packets need 2 to 1,000,000 hosts; got 1"),
        ({"skew": -0.5}, "the skew of hosts must lie between 0 (none) and 5; got -0.5"),
        ({"seconds": 0}, "the number of seconds must be a number above 0; got 0"),
        (
            {"rate_per_s": 0.1, "seconds": 1},
            "0.1 packets per second make no packet in 1 seconds. "
            "Raise the rate or the number of seconds.",
        ),
        (
            {"seconds": None},
            "this feed would never end and never wait. Limit its length or give a speedup.",
        ),
    ],
)
def test_what_cannot_be_captured(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        Packets(**{"seconds": 1, **options})
    assert str(error.value) == message
