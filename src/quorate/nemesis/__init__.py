"""Real processes on a hostile machine: killed, stopped, cut off, on disks that lose and fail.

Three or five members run on loopback. Between them stands a proxy that holds, delays and cuts;
their disks lose at a kill what was not synced. Clients record what they asked and got. At the end
all is healed, and the history, the logs on disk and the states are held against each other.
"""
