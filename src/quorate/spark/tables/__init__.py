"""The warehouse: every record (bronze), what it changed (silver), state and history (gold)."""
