"""A replicated state machine for other programs."""
