"""Exhaustive in the small: every order of every event over a few real cores, breadth first.

`replica` (one core, frozen, thawed and stepped), `canon` (when two are the same), `space` (states
and what can happen in them), `laws` (what must hold in each), `search` (breadth first), `retell`
(the way to a state as a story).
"""
