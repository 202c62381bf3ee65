"""Completion files of the shells, and the tool that prints them."""
