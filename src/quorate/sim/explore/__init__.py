"""Bounded exploration: every order of every event over a few real cores, breadth first.

local_state     one replica as a value
replica_states  one core: frozen, restored and stepped
canonical_form  when two cores are equal
setups          initial states
space           states and actions
invariants      what is checked in each state
search          breadth-first search
to_scenario     a path as a scenario
"""
