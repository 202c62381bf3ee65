"""`quorate pipeline`."""
