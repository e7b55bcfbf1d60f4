"""A window join on a cluster of a master and workers, as its source has it, in simulated time."""
