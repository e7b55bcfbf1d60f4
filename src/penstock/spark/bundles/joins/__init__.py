"""The window join as a kernel of light fragments."""
