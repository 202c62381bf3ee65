"""`quorate quickstart`."""
