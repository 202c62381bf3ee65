"""Bugs planted into the real code, one at a time, that the simulator must find.

A mutant is a text replaced in a module's source when a fresh process imports it (`plant`); nothing
is ever written to the tree. `hunt` runs seeds over it until a check fails.
"""
