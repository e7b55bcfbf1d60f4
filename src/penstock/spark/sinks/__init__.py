"""Where results go: every sink takes a batch exactly once, however often it is offered."""
