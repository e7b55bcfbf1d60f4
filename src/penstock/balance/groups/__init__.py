"""Partition groups of a join: which worker owns which, how many workers, how groups are split."""
