"""Broadcast cycles as bytes: how they are made, and what a receiver does with them. No sockets."""
