"""Plain transcriptions of the sources, loop by loop: what the fast versions are held against."""
