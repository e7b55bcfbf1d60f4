"""How it moves: which operators change their node when the load does."""
