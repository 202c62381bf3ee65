"""Rules removed from the specification, one at a time, and schedules that show why each is needed."""

from __future__ import annotations

from dataclasses import dataclass

Steps = tuple[tuple[str, str], ...]


def do(server: str, *actions: str) -> Steps:
    return tuple((action, server) for action in actions)


def run_for(candidate: str) -> Steps:
    """Candidate of the epoch after its own; its vote is on its disk."""
    return do(candidate, "Timeout", "BecomeCandidate", "Sync")


def vote(voter: str) -> Steps:
    """Learn of the epoch, and vote."""
    return do(voter, "LearnEpoch", "Sync", "GrantVote", "Sync")


def lead(leader: str) -> Steps:
    """Lead; election and first entry are on the disk."""
    return do(leader, "BecomeLeader", "Sync", "Sync")


def elect(leader: str, voter: str) -> Steps:
    return run_for(leader) + vote(voter) + lead(leader)


def later(server: str) -> Steps:
    """Learn of the newest epoch."""
    return do(server, "LearnEpoch", "Sync")


def follow(server: str) -> Steps:
    """Having voted, learn who leads."""
    return do(server, "LearnLeader", "Sync")


def fetch(server: str) -> Steps:
    """Take one entry and acknowledge it."""
    return do(server, "Fetch", "FetchRecords", "Sync", "Fetch")


@dataclass(frozen=True)
class Sabotage:
    name: str
    rule: str
    """Text of Quorate.tla that occurs once there."""
    instead: str
    breaks: str
    """The invariant or property that TLC must then find violated."""
    schedule: Steps
    voters: str = "{a, b, c}"

    @property
    def text(self) -> str:
        """The schedule in TLA+."""
        return "<<" + ", ".join(f'<<"{action}", {who}>>' for action, who in self.schedule) + ">>"


SABOTAGES = (
    Sabotage(
        "two votes in an epoch",
        "        /\\ Now(i).voted = None\n",
        "",
        "ElectionSafety",
        run_for("a")
        + run_for("c")
        + vote("b")
        + do("b", "GrantVote", "Sync")
        + do("a", "BecomeLeader")
        + do("c", "BecomeLeader"),
    ),
    Sabotage(
        "a vote without a look at the log",
        "        /\\ UpToDate(m.last, m.end, Now(i).log)\n",
        "",
        "LeaderCompleteness",
        elect("a", "b")
        + follow("b")
        + fetch("b")
        + do("a", "Commit")
        + later("c")
        + elect("c", "b"),
    ),
    Sabotage(
        "records of another log taken",
        "    /\\ Settled(i)\n    /\\ Fits(i)\n\nFetch(i)",
        "    /\\ Settled(i)\n\nFetch(i)",
        "LogMatching",
        elect("a", "b")
        + later("c")
        + elect("c", "b")
        + do("c", "Propose", "Sync")
        + later("a")
        + do("a", "Fetch", "FetchRecords"),
    ),
    Sabotage(
        "a high watermark taken for another log",
        "    /\\ Fits(i)\n    /\\ \\E n",
        "    /\\ \\E n",
        "CommittedPrefix",
        elect("a", "b")
        + later("c")
        + elect("c", "b")
        + follow("b")
        + fetch("b")
        + do("c", "Commit")
        + later("a")
        + do("a", "FollowHighWatermark"),
    ),
    Sabotage(
        "a fetch before the log is durable",
        "    /\\ Settled(i)\n    /\\ Fits(i)\n\nFetch(i)",
        "    /\\ Fits(i)\n\nFetch(i)",
        "DurableBeforeSent",
        elect("a", "b") + follow("b") + do("b", "Fetch", "FetchRecords", "Fetch"),
    ),
    Sabotage(
        "the leader's own log counted before it is durable",
        "IF v = i THEN DurableEnd(i) ELSE",
        "IF v = i THEN Len(Now(i).log) ELSE",
        "DurableMajority",
        run_for("a")
        + vote("b")
        + do("a", "BecomeLeader", "Sync")
        + follow("b")
        + fetch("b")
        + do("a", "Commit"),
    ),
    Sabotage(
        "an older epoch committed by counting",
        "        /\\ EpochAt(Now(i).log, n) = Now(i).epoch\n",
        "",
        "LeaderCompleteness",
        elect("a", "b")
        + later("c")
        + elect("c", "b")
        + later("a")
        + elect("a", "b")
        + follow("b")
        + fetch("b")
        + do("a", "Commit")
        + later("c")
        + elect("c", "b"),
    ),
    Sabotage(
        "a high watermark that falls",
        "        /\\ n > led[Now(i).epoch].hw\n",
        "",
        "HighWatermarkMonotonic",
        elect("a", "b")
        + follow("b")
        + fetch("b")
        + do("a", "Propose", "Sync")
        + fetch("b")
        + do("a", "Commit", "Commit"),
    ),
    Sabotage(
        "the voter set kept on truncation",
        "        /\\ voters' = [voters EXCEPT ![i] = VotersOf(i, Prefix(log, cut))]\n"
        "        /\\ UNCHANGED <<",
        "        /\\ UNCHANGED <<voters, ",
        "VotersInForce",
        elect("a", "b")
        + follow("b")
        + fetch("b")
        + do("a", "Commit", "ChangeVoters", "Sync")
        + elect("b", "c")
        + later("a")
        + do("a", "Truncate"),
    ),
    Sabotage(
        "a second change before the first is committed",
        "        /\\ Newest(VotersAt(Now(i).log)) <= hw[i]\n",
        "",
        "OneVoterChange",
        elect("a", "b")
        + follow("b")
        + fetch("b")
        + do("a", "Commit", "ChangeVoters", "ChangeVoters"),
    ),
    Sabotage(
        "two voters changed at once",
        "        /\\ Difference(set, voters[i]) <= 1\n",
        "",
        "VoterSetsOverlap",
        elect("a", "b") + follow("b") + fetch("b") + do("a", "Commit", "ChangeVoters"),
    ),
    # Ongaro, 2015. Of two voters a adds c, loses that in a crash, and votes for b, which removes
    # a by itself; c, that kept what a lost, is elected by a.
    Sabotage(
        "a change before a record of the epoch is committed",
        "        /\\ led[Now(i).epoch].hw > 0\n",
        "",
        "LeaderCompleteness",
        elect("a", "b")
        + follow("b")
        + fetch("b")
        + do("a", "Commit")
        + do("b", "FollowHighWatermark")
        + later("c")
        + fetch("c")
        + do("a", "ChangeVoters")
        + fetch("c")
        + do("a", "Crash")
        + elect("b", "a")
        + do("b", "ChangeVoters", "Sync", "Commit")
        + later("c")
        + elect("c", "a"),
        "{a, b}",
    ),
    Sabotage(
        "a candidate again after a restart, of an epoch that has a leader",
        "/\\ s.leader = None  \\* a losing",
        "\\* a losing",
        "CommittedPrefix",
        run_for("a")
        + run_for("b")
        + vote("c")
        + lead("b")
        + follow("c")
        + fetch("c")
        + do("b", "Commit", "ChangeVoters", "Sync")
        + follow("a")
        + do("a", "Fetch", "FetchRecords", "Sync", "Sync", "Fetch")
        + do("b", "Commit", "ChangeVoters", "Sync")
        + do("a", "FetchRecords", "Sync", "Crash", "BecomeLeader"),
    ),
)
