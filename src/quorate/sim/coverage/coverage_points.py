"""The coverage points of a campaign: what its seeds are to reach, each with its own counter.

There are five kinds:

- `fault: ...` for every kind of fault
- `interrupted: ...` for every disk operation that a crash interrupted
- `mistake: ...` for every kind of invalid request
- `role: ...` for every legal transition between roles
- sentences for situations that are worth reaching

A campaign that does
not reach one of `ALL_COVERAGE_POINTS` has not tested what it seems to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.raft.roles import (
    LEGAL_TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorate.sim.coverage.coverage_of_edges import EDGES
from quorate.sim.coverage.coverage_of_long_runs import COVERAGE_POINTS as LONG_RUN_POINTS
from quorate.sim.coverage.coverage_of_voter_updates import COVERAGE_POINTS as VOTER_UPDATE_POINTS
from quorate.sim.plan.plan import FAULT_EVENTS, INVALID_REQUESTS
from quorate.sim.world.disk_operations import INTERRUPTED

_RANDOM_FAULTS: Final = (
    "lost",
    "duplicated",
    "held",
    "reordered",
    "held by a partition",
    "disk failed at random",
    "power cut in recovery",
    "damaged",
    "reset at random",
    "corrupted",
    "short write",
    "an install outlasts the fetch timeout",
    "cleaned while it installs",
    "stranded observer wiped",
)
ROLES: Final[Mapping[str, type[Role]]] = {
    "unattached": Unattached,
    "prospective": Prospective,
    "candidate": Candidate,
    "follower": Follower,
    "observer": Follower,
    "leader": Leader,
    "resigned": Resigned,
}
NOTES: Final[Mapping[str, str]] = {
    r"truncated to": "a follower truncated",
    r"voters .* again$": "an uncommitted voter set was truncated",
    r".*resigned \(no fetch": "a leader resigned by check quorum",
    r".*resigned \(removed": "a leader removed itself",
    r".*resigned \(shutdown": "a leader was shut down",
    r".*resigned \(state machine": "a state machine gave up leading",
    r".*\(no leader followed\)": "nobody followed a leader that resigned",
    r".*\(connection to the leader lost\)": "a voter ran because the leader's connection broke",
    r".*\(the leader ended its epoch\)": "a voter ran because the leader ended its epoch",
    r".*\(fetch timeout\)": "a follower ran after a silent leader",
    r".*\(election timeout\)": "a voter ran that knew no leader",
    r".*\(election timed out\)": "an election timed out",
    r".*\(pre-vote lost\)": "a pre-vote was lost",
    r".*\(pre-vote timed out\)": "a pre-vote timed out",
    r".*\(.* knows no pre-vote\)": "a peer knew no pre-votes",
    r".*: election lost": "an election was lost",
    r".*pre-vote of .* refused": "a pre-vote was refused",
    r".*: vote of .* refused": "a vote was refused",
    r".*: vote of .* granted": "a vote was granted",
    r".*\(its disk has not moved": "a leader resigned because its disk hung",
    r"leader .* ends epoch": "a follower received its leader's EndQuorumEpoch",
    r"voter change timed out": "a voter change timed out",
    r"add voter .* asks": "a voter-to-be was asked for its versions",
    r"auto join: joins": "an observer joined by itself",
    r"auto join: [A-Z]": "an observer was not let in at once",
    r"kraft.version 1 at": "a static quorum was upgraded",
    r"voter .* reported itself": "a static voter reported its directory to the leader",
    r"the configured static voters are ignored": "static voters were ignored",
    r"the voter set holds node": "a replica found its place taken by its old disk",
    r".* has another directory id": "a message for another directory was refused",
    r"fetches snapshot": "a snapshot was fetched",
    r"leader .* no longer has": "a snapshot was fetched while the source cleaned it",
    r"log starts at snapshot": "a snapshot took the place of a log",
    r"log starts at \d+, older": "a log was cleaned",
    r"nothing to clean": "there was nothing to clean",
    r"Wrote snapshot": "a snapshot was written",
    r".*an older copy of its directory was restored": "a voter acknowledged less than before",
    r".*fetches at \d+, having": "a replica acknowledged less than before",
    r"storage failed": "a replica lost its disk while it ran",
    r"resignation of epoch": "a resignation came too late",
    r"connection to leader": "a follower lost the connection to its leader",
    r"stopped$": "a replica stopped in good order",
}
"""By the beginning of a note (a pattern): its coverage point."""
STEP_NOTE: Final = re.compile("|".join(f"({pattern})" for pattern in NOTES))
STEP_NOTE_POINTS: Final = tuple(NOTES.values())
"""By the number of the group of STEP_NOTE, from 0."""
ROLE_ENTERED: Final = re.compile(rf"epoch \d+: (starts as )?({'|'.join(ROLES)})\b")
RECOVERY_NOTES: Final[Mapping[str, str]] = {
    "cut a torn tail": "a torn tail was cut at recovery",
    "dropped the log, it goes on behind": "recovery finished the install of a snapshot",
    ": removed, no longer of use": "recovery removed a file that was half made",
    "written anew from the log": "recovery rebuilt a damaged index",
}
LACKS_SUPPORT: Final = "not all of the voters support it"
"""In the refusal of an upgrade."""
CHANGE_NOT_COMMITTED: Final = "waiting for voters to commit the latest voter change"
REFUSALS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.FENCED_LEADER_EPOCH: "a message of an older epoch came in a later one",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "a message of a later epoch came to an older leader",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "a replica that did not lead was asked for the log",
    ErrorCode.INVALID_VOTER_KEY: "a message was meant for an older disk of its receiver",
    ErrorCode.REQUEST_TIMED_OUT: "a voter change had to wait for another one",
    ErrorCode.DUPLICATE_VOTER: "a voter was added that was one already",
    ErrorCode.VOTER_NOT_FOUND: "a voter was removed that was none",
    ErrorCode.SNAPSHOT_NOT_FOUND: "a snapshot was asked for that was gone",
    ErrorCode.BROKER_NOT_AVAILABLE: "a replica was asked while it was stopping",
    ErrorCode.UNSUPPORTED_VERSION: "a voter change was asked for at kraft.version 0",
    ErrorCode.INVALID_REQUEST: "a voter change was asked for that cannot be",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "another cluster was meant",
}
_SITUATIONS: Final = (
    "a snapshot came too late to count",
    "a leader resigned by check quorum with a change pending",
    "a leader resigned with an uncommitted voter set",
    "an entry of an older epoch on a majority was not counted",
    "two replicas led at once, in two epochs",
    "a leader led outside its own voter set",
    "a replica ran that is not in its newest voter set",
    "a proposal was left in doubt",
    "an upgrade was refused that a voter cannot run",
    "several batches were written under one sync",
    "a snapshot was installed while another one was loaded",
    "a snapshot was installed while the log was read to be applied",
    "a snapshot was installed while the log was applied",
    "a voter change was refused while another one was not committed",
    "an update of a voter was refused while a change was not committed",
    "the tail in a node's memory was trimmed",
    "a leader read from its disk what its tail had dropped",
    "a static quorum was upgraded under load",
    "an upgrade of a static quorum was truncated",
    "a vote was lost by a crash before its sync",
    "a new epoch was lost by a crash before its sync",
    "an unsynced tail was lost in a crash",
    "an unsynced tail survived a crash",
    "a leader crashed with records that were not committed",
    "a leader crashed with a voter change under way",
    "a crash interrupted the install of a snapshot",
    "a crash interrupted the download of a snapshot",
    "a replica began with a snapshot",
    "a leader began anew and resigned",
    "a voter that had voted for itself began anew as candidate",
    "recovery refused a damaged disk",
    "a disk was replaced by an empty one",
    "an old copy of a disk was put back",
    "an operation was sent again and done once",
    "a client never learned what became of its operation",
    "a client was refused for good and went on",
    "a submission fitted no batch",
    "everything healed",
    *EDGES,
    *LONG_RUN_POINTS,
    *VOTER_UPDATE_POINTS,
)

RENAMED: Final[Mapping[str, str]] = {
    "fault: stranger": "fault: foreign-cluster",
    "mistake: remove-stranger": "mistake: remove-unknown",
    "a voter ran because the leader said goodbye": "a voter ran because the leader ended its epoch",
    "a follower heard its leader's goodbye": "a follower received its leader's EndQuorumEpoch",
    "a static voter told its leader its directory": "a static voter reported its directory to the leader",
}
"""By their names in results of earlier releases."""

ALL_COVERAGE_POINTS: Final[tuple[str, ...]] = (
    *(f"fault: {kind}" for kind in (*FAULT_EVENTS, *_RANDOM_FAULTS)),
    *(f"interrupted: {operation}" for operation in INTERRUPTED),
    *(f"mistake: {invalid_request}" for invalid_request in INVALID_REQUESTS),
    *(f"role: {a.__name__} to {b.__name__}" for a, b in LEGAL_TRANSITIONS),
    *dict.fromkeys(STEP_NOTE_POINTS),
    *RECOVERY_NOTES.values(),
    *REFUSALS.values(),
    *_SITUATIONS,
)
"""Every coverage point that a campaign has to reach."""


def not_reached(coverage: Mapping[str, int]) -> list[str]:
    """The coverage points that these counters, summed over all seeds of a campaign, did not reach."""
    return [name for name in ALL_COVERAGE_POINTS if not coverage.get(name)]
