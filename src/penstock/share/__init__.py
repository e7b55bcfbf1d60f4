"""What a new query reuses, what that does to the others, and whether it is admitted."""
