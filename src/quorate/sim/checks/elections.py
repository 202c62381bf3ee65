"""Epochs, votes and leaders: who may run, who has won, and who must be left in peace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.node.jobs import Installed, Written
from quorate.raft.inputs import Failure, SendFailed
from quorate.raft.roles import Candidate, Follower, Prospective, Role
from quorate.raft.values import ElectionState, Voter
from quorate.sim.checks.history import Entry, History, Reign
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter, matches, names
from quorate.sim.checks.words import election_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects, Input
    from quorate.raft.state import State

_SILENT: Final = "(fetch timeout)"
"""Why a follower runs, in its notes."""


class Elections:
    """Watches every new ElectionState, in memory and on the disk."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.pre_votes: dict[tuple[int, ReplicaKey], dict[ReplicaKey, bool]] = {}
        """By epoch and candidate: who granted one in that epoch, ever, and whether the candidate
        had been removed when it first did."""

    # -- in memory ----------------------------------------------------------------------------
    def changed(self, twin: Twin, new: ElectionState, happened: Sequence[Input]) -> None:
        """A replica has a new epoch, leader or vote in memory, after this had happened."""
        old = twin.election
        if new.epoch < old.epoch:
            raise Violation("epoch is monotonic", f"{twin}: {_move(old, new)}")
        if new.epoch == old.epoch:
            self._same_epoch(twin, old, new)
        elif new.voted is not None and new.voted == twin.key:
            self._runs(twin, new, happened)
        if new.leader_id not in (-1, twin.id):
            reign = self.history.reigns.get(new.epoch)
            if reign is None or reign.node_id != new.leader_id:
                raise Violation(
                    "election safety",
                    f"{twin} takes node {new.leader_id} for the leader of epoch {new.epoch}, "
                    f"known is {'none' if reign is None else f'node {reign.node_id}'}",
                )
        twin.election = new

    def _same_epoch(self, twin: Twin, old: ElectionState, new: ElectionState) -> None:
        if old.leader_id not in (-1, new.leader_id):
            text = f"{twin}: two leaders in an epoch: {_move(old, new)}"
            raise Violation("election safety", text)
        kept = new.voted == old.voted or new.leader_id == twin.id
        if old.voted is not None and not kept:
            raise Violation("one vote an epoch", f"{twin}: {_move(old, new)}")

    def _runs(self, twin: Twin, new: ElectionState, happened: Sequence[Input]) -> None:
        """It became a candidate: as one that may, and that a majority would elect (KIP-996)."""
        voters = twin.voters
        if not is_voter(voters, twin.key) and not _was_voter(twin):
            raise Violation(
                "observers do not run",
                f"{twin} runs in epoch {new.epoch}; the voters are {names(voters)}",
            )
        if met_an_old_peer(happened):
            return
        granted = self.pre_votes.get((new.epoch - 1, twin.key), {})
        removal = self._removal_of(twin.key)
        if (
            removal is not None
            and not twin.tip.holds(removal)
            and new.epoch > self.history.newest_reign  # else it comes late to where others are
            and all(granted.values())  # who granted before knew no better
        ):
            raise Violation(
                "a removed voter does not disturb",
                f"{twin} raises the epoch to {new.epoch}, having been removed by {removal}",
            )
        count = sum(
            matches(voter.key, twin.key) or any(matches(voter.key, key) for key in granted)
            for voter in voters
        )
        if count <= len(voters) // 2:
            raise Violation(
                "pre-vote",
                f"{twin} runs in epoch {new.epoch}; of {names(voters)} only {len(granted)} have "
                f"granted it a pre-vote before",
            )

    def granted_pre_vote(self, twin: Twin, epoch: int, candidate: ReplicaKey) -> None:
        """An answer leaves that grants one: to one that has been removed by then, or not."""
        removed = self._removal_of(candidate) is not None
        self.pre_votes.setdefault((epoch, candidate), {}).setdefault(twin.key, removed)

    def _removal_of(self, key: ReplicaKey) -> Entry | None:
        """The newest committed voter set, if it has no such voter."""
        committed = self.history.committed
        if committed.voters is None or is_voter(committed.voters, key):
            return None
        return committed.voters_entry

    # -- on the disk --------------------------------------------------------------------------
    def recovered(self, twin: Twin, voters: tuple[Voter, ...]) -> None:
        """What the disk gave back counts as said, whether or not it was known to be durable.

        voters: those before its log; of the life before, where the disk has lost them since
        """
        self._count_vote(twin, twin.vote)
        if twin.vote.leader_id == twin.id and twin.vote.epoch not in self.history.reigns:
            self._elected(twin, twin.vote.epoch, voters)

    def saved(self, twin: Twin, elections: Sequence[ElectionState]) -> None:
        """These became durable, in this order: a vote counts, a leader may speak."""
        for election in elections:
            self._count_vote(twin, election)
            if election.leader_id == twin.id:
                self._elected(twin, election.epoch, twin.own_voters)

    def _count_vote(self, twin: Twin, vote: ElectionState) -> None:
        if vote.voted is not None:
            self.history.given.setdefault(vote.epoch, set()).add((twin.id, vote.voted.id))
            votes = self.history.votes.setdefault(vote.epoch, {})
            if vote.epoch <= twin.forgotten:
                votes[twin.key] = vote.voted
            first = votes.setdefault(twin.key, vote.voted)
            if first.id != vote.voted.id or (
                first.directory_id != vote.voted.directory_id
                and ZERO_UUID not in (first.directory_id, vote.voted.directory_id)
            ):
                raise Violation(
                    "one vote an epoch",
                    f"{twin} votes for {vote.voted} in epoch {vote.epoch}, and voted for {first}",
                )

    def _elected(self, twin: Twin, epoch: int, own_voters: tuple[Voter, ...]) -> None:
        history = self.history
        reign = history.reigns.get(epoch)
        if reign is not None:
            if reign.node_id != twin.id or reign.life != twin.life:
                raise Violation(
                    "election safety",
                    f"epoch {epoch} has two leaders: node {reign.node_id} (life {reign.life}) and "
                    f"{twin}",
                )
            return
        self._check_votes(twin, epoch, own_voters)
        if history.committed.epoch < epoch and not twin.tip.holds(history.committed):
            raise Violation(
                "leader completeness",
                f"{twin} leads epoch {epoch} with the log up to {twin.tip}, without the committed "
                f"{history.committed}",
            )
        history.reigns[epoch] = Reign(twin.id, twin.life, twin.tip)
        history.newest_reign = max(history.newest_reign, epoch)
        for entry in twin.made:
            history.add(entry, twin)
        twin.made.clear()

    def _check_votes(self, twin: Twin, epoch: int, own_voters: tuple[Voter, ...]) -> None:
        """A majority of its voters, each by id and directory id, has durably voted for it."""
        first = twin.made[0].parent if twin.made else twin.tip
        assert first is not None
        voters = first.voters or own_voters
        votes = self.history.votes.get(epoch, {})
        count = 0
        for voter in voters:
            for key, candidate in votes.items():
                if matches(voter.key, key) and candidate.id == twin.id:
                    count += candidate.directory_id in (ZERO_UUID, twin.key.directory_id)
                    break
        if count <= len(voters) // 2:
            raise Violation(
                "election safety",
                f"{twin} leads epoch {epoch} by {count} durable votes of {names(voters)}",
            )


def check_runs(twin: Twin, state: State) -> None:
    """Nobody asks for votes in an epoch that has a leader, as it knows itself."""
    leader = state.election.leader_id
    if isinstance(state.role, Candidate) and leader >= 0:
        raise Violation(
            "who has a leader does not run",
            f"{twin} is candidate of epoch {state.election.epoch}, which node {leader} leads",
        )


def check_may_run(twin: Twin, effects: Effects, state: State) -> None:
    """Whoever may run knows it, and nobody else: looked at when a voter set begins to rule, and
    when it is known to be committed."""
    newest, change = twin.tip.voters_entry, twin.tip.change_entry
    is_open = change is not None and change.end > twin.high.end
    if (newest is twin.ruled_by and is_open is twin.is_open) or effects.is_over:
        return
    twin.ruled_by, twin.is_open = newest, is_open
    takes_itself = state.electable
    if takes_itself is not may_run(twin):
        but = "may not run for leader, and would" if takes_itself else "may run, and never would"
        known = "not known to be" if is_open else "known to be"
        raise Violation(
            "who may run knows it",
            f"{twin} {but}; the voters {names(twin.voters)} are {known} committed",
        )


def may_run(twin: Twin) -> bool:
    """A voter may; and who was one until the newest change, as long as that is not known to be
    committed: it may hold the only record of its own removal (Raft, section 4.2.2). Never beside
    another directory of its id."""
    named = [voter for voter in twin.voters if voter.key.id == twin.id]
    return is_voter(tuple(named), twin.key) if named else _was_voter(twin)


def _was_voter(twin: Twin) -> bool:
    change = twin.tip.change_entry
    if change is None or change.parent is None or change.end <= twin.high.end:
        return False
    return is_voter(change.parent.voters or twin.own_voters, twin.key)


def check_rests(twin: Twin, role: Role) -> None:
    """Who waits for a snapshot to take the place of its log knows neither log nor voters: it asks
    for no votes and no pre-votes meanwhile, however long that takes."""
    if twin.installing is not None and isinstance(role, Prospective | Candidate):
        raise Violation(
            "who installs a snapshot does not run",
            f"{twin} runs after epoch {twin.election.epoch} while a snapshot takes the place of "
            "its log",
        )


def met_an_old_peer(happened: Sequence[Input]) -> bool:
    """Did it hear that a request cannot be said in what a peer understands? So it is with
    pre-votes: of such a peer only a vote can be asked."""
    return any(
        isinstance(item, SendFailed) and item.failure is Failure.UNSUPPORTED_VERSION
        for item in happened
    )


def check_installed(twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
    """What a follower was told in this step is that its snapshot is installed, and nothing by
    anybody but its disk: however long that took, its leader was not silent."""
    found = False
    for item in happened:
        if isinstance(item, Installed):
            found = True
        elif not isinstance(item, Written):
            return
    if not found or effects.is_over:
        return
    role, least = state.role, state.now + state.config.fetch_timeout_ms
    waits = not isinstance(role, Follower) or role.fetch_deadline >= least
    if waits and not any(_SILENT in note for note in effects.notes):
        return
    raise Violation(
        "who has installed a snapshot waits for its leader",
        f"{twin} has installed a snapshot of epoch {state.election.epoch}, and takes its leader, "
        f"node {state.election.leader_id}, for silent before the fetch timeout is over",
    )


def _move(old: ElectionState, new: ElectionState) -> str:
    return f"from {election_words(old)} to {election_words(new)}"
