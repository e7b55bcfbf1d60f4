"""Running a deployment faster or slower than its file says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.errors import InputError, UsageError, listed
from penstock.model.network import Network
from penstock.model.sources import GeneratorSource, ReplaySource, Source, Stream


@dataclass(frozen=True)
class Speed:
    """Seconds of event time that pass in a second; None plays everything at once.

    >>> print(Speed.parse("max"), Speed.parse("600"), Speed.parse("0.5"))
    max 600 0.5
    """

    speedup: float | None

    @classmethod
    def parse(cls, written: str) -> Speed:
        """The speed as it was typed."""
        if written.strip().lower() == "max":
            return cls(None)
        try:
            speedup = float(written)
        except ValueError:
            speedup = 0.0
        if not 0 < speedup < float("inf"):
            raise UsageError(
                f"--speed {written} is not a speed",
                hint="Give a number above zero, for example --speed 600, or --speed max.",
            )
        return cls(speedup)

    def __str__(self) -> str:
        return "max" if self.speedup is None else f"{self.speedup:g}"


def at_speed(network: Network, speed: Speed) -> Network:
    """The network with every generator and replay at ``speed``.

    Raises if nothing in it has a pace, or if a generator without an end would be asked for
    everything at once.
    """
    if not any(
        isinstance(stream.source, GeneratorSource | ReplaySource) for stream in network.streams
    ):
        names = listed(stream.name for stream in network.streams)
        raise UsageError(
            f"--speed {speed} changes nothing: no stream is generated or replayed ({names})",
            hint="Leave it out.",
        )
    return replace(network, streams=tuple(_paced(stream, speed) for stream in network.streams))


def _paced(stream: Stream, speed: Speed) -> Stream:
    source = _paced_source(stream.source, speed)
    if isinstance(source, GeneratorSource):
        _check(stream.name, source)
    return replace(stream, source=source)


def _paced_source(source: Source, speed: Speed) -> Source:
    match source:
        case GeneratorSource(generator, options):
            speedup = "max" if speed.speedup is None else _number(speed.speedup)
            return GeneratorSource(generator, {**options, "speedup": speedup})
        case ReplaySource():
            return replace(source, speedup=speed.speedup)
        case _:
            return source


def _number(speedup: float) -> int | float:
    # As the file would have it, so that the same speed written there is the same plan.
    return int(speedup) if speedup.is_integer() else speedup


def _check(stream: str, source: GeneratorSource) -> None:
    from penstock.feeds.generators import generator

    try:
        generator(source.generator, source.options)
    except InputError as error:
        raise InputError(f"stream {stream}: {error.what}", hint=error.hint) from None
