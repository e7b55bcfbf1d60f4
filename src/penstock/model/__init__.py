"""What exists: schemas, streams, operators, queries, networks; frozen, checked when built."""
