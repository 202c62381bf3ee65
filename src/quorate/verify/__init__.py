"""Checks of a running replica against its medium, with rules of their own.

The simulator runs them after each step, a node where `QUORATE_VERIFY_LOG` is set. Of the code that
they check they import data types only: a rule that both shared would hide its own mistake.
"""
