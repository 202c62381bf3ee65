"""`quorate sim`."""
