"""Bugs of timers: something is due, and nobody wakes for it."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

TIMERS = (
    Mutant(
        "check-quorum-wakes-nobody",
        "a leader without a majority sleeps until it reminds the others of its epoch",
        "raft.leading",
        "        wake = min(wake, role.check_deadline)\n",
        "        pass\n",
    ),
    Mutant(
        "change-wakes-nobody",
        "a voter change whose time is up is answered when something else happens",
        "raft.leading",
        "        wake = min(wake, role.change.deadline)\n",
        "        pass\n",
    ),
    Mutant(
        "rest-wakes-nobody",
        "after a request that failed the next one waits until something else happens",
        "raft.requests",
        "            if at > now_ms and (wake is None or at < wake):\n"
        "                wake = at\n"
        "        for flight",
        "            pass\n        for flight",
    ),
    Mutant(
        "slow-to-suspect",
        "a follower waits eight fetch timeouts for a silent leader",
        "raft.moves",
        "return s.config.fetch_timeout_ms + turn_ms(s)",
        "return 8 * s.config.fetch_timeout_ms + turn_ms(s)",
    ),
    Mutant(
        "slow-elections",
        "an election takes ten times as long",
        "raft.state",
        "        return self.now + timeout + int(self.random() * timeout)\n",
        "        return self.now + 10 * timeout + int(self.random() * timeout)\n",
    ),
)
