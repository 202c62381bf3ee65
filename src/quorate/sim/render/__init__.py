"""A run as text, HTML or a TLA+ trace."""
