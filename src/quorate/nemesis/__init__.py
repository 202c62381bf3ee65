"""Fault injection into a quorum of real processes, checked by what clients and disks recorded.

Three or five members run on loopback. A proxy in front of each member delays, holds and resets
connections. The members' disks lose at a kill what was not synced. Clients record their operations.
At the end every fault is repaired; then the checks compare the clients' history, the logs on disk
and the members' states.
"""
