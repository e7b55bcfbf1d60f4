"""Channels: durable, replayable logs that carry a stream from one fragment to others."""
