"""Epochs, votes and leaders: who may start an election, who has won, and who must stay undisturbed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.raft.inputs import SendFailed, SendFailure
from quorate.raft.roles import Candidate, Follower, Prospective, Role
from quorate.raft.values import ElectionState, Voter
from quorate.replica.disk_jobs import Installed, Written
from quorate.sim.checks.history import ClusterHistory, Leadership, LoggedBatch
from quorate.sim.checks.messages import election_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voters import is_voter, matches, names
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Effects, Input

_SILENT: Final = "(fetch timeout)"
"""In a note: the reason for which a follower starts an election."""


class ElectionCheck:
    """Checks every new ElectionState in memory and on disk."""

    def __init__(self, history: ClusterHistory) -> None:
        self.history = history
        self.pre_votes: dict[tuple[int, ReplicaKey], dict[ReplicaKey, bool]] = {}
        """By epoch and candidate: each voter that ever granted a pre-vote in that epoch, and
        whether the candidate had been removed at its first grant."""

    # -- in memory ----------------------------------------------------------------------------
    def state_changed(
        self, model: ReplicaModel, new: ElectionState, happened: Sequence[Input]
    ) -> None:
        """A replica has a new epoch, leader or vote in memory after these inputs.

        Election Safety (Raft, figure 3): "at most one leader can be elected in a given term". The
        epoch is monotonic.
        """
        old = model.election
        if new.epoch < old.epoch:
            raise ViolationError("epoch is monotonic", f"{model}: {_transition(old, new)}")
        if new.epoch == old.epoch:
            self._same_epoch(model, old, new)
        elif new.voted is not None and new.voted == model.key:
            self._runs(model, new, happened)
        if new.leader_id not in (-1, model.id):
            leadership = self.history.leaderships.get(new.epoch)
            if leadership is None or leadership.node_id != new.leader_id:
                raise ViolationError(
                    "election safety",
                    f"{model} takes node {new.leader_id} for the leader of epoch {new.epoch}, "
                    f"known is {'none' if leadership is None else f'node {leadership.node_id}'}",
                )
        model.election = new

    def _same_epoch(self, model: ReplicaModel, old: ElectionState, new: ElectionState) -> None:
        if old.leader_id not in (-1, new.leader_id):
            text = f"{model}: two leaders in an epoch: {_transition(old, new)}"
            raise ViolationError("election safety", text)
        kept = new.voted == old.voted or new.leader_id == model.id
        if old.voted is not None and not kept:
            raise ViolationError("one vote an epoch", f"{model}: {_transition(old, new)}")

    def _runs(self, model: ReplicaModel, new: ElectionState, happened: Sequence[Input]) -> None:
        """The replica became a candidate.

        1. It is a voter, or was one until a change that is not committed (see `is_electable`).
        2. A removed voter does not raise the epoch of the others (KIP-996; Raft dissertation,
           section 4.2.3).
        3. A majority has granted it a pre-vote (KIP-996), except where a peer does not support
           pre-votes.
        """
        voters = model.voters
        if not is_voter(voters, model.key) and not _was_voter(model):
            raise ViolationError(
                "observers do not start elections",
                f"{model} becomes a candidate of epoch {new.epoch}; the voters are {names(voters)}",
            )
        if met_peer_without_pre_vote(happened):
            return
        granted = self.pre_votes.get((new.epoch - 1, model.key), {})
        removal = self._removal_of(model.key)
        if (
            removal is not None
            and not model.tip.holds(removal)
            # An epoch that others already lead is not raised by this candidate.
            and new.epoch > self.history.newest_led_epoch
            # A pre-vote that was granted before the removal may still be counted.
            and all(granted.values())
        ):
            raise ViolationError(
                "a removed voter does not disturb",
                f"{model} raises the epoch to {new.epoch}, having been removed by {removal}",
            )
        count = sum(
            matches(voter.key, model.key) or any(matches(voter.key, key) for key in granted)
            for voter in voters
        )
        if count <= len(voters) // 2:
            raise ViolationError(
                "pre-vote",
                f"{model} becomes a candidate of epoch {new.epoch}; of {names(voters)} only "
                f"{len(granted)} have granted it a pre-vote",
            )

    def granted_pre_vote(self, model: ReplicaModel, epoch: int, candidate: ReplicaKey) -> None:
        """A response grants a pre-vote. Records whether the candidate had been removed by then."""
        removed = self._removal_of(candidate) is not None
        self.pre_votes.setdefault((epoch, candidate), {}).setdefault(model.key, removed)

    def _removal_of(self, key: ReplicaKey) -> LoggedBatch | None:
        """The batch of the newest committed voter set where the set lacks this replica; None
        otherwise."""
        committed = self.history.committed
        if committed.voters is None or is_voter(committed.voters, key):
            return None
        return committed.voters_entry

    # -- on the disk --------------------------------------------------------------------------
    def recovered(self, model: ReplicaModel, voters: tuple[Voter, ...]) -> None:
        """The recovered election state counts as sent, whether or not it was known to be durable.

        `voters` are those before the recovered log, or of the previous incarnation where the disk
        has lost them.
        """
        self._count_vote(model, model.vote)
        if model.vote.leader_id == model.id and model.vote.epoch not in self.history.leaderships:
            self._elected(model, model.vote.epoch, voters)

    def became_durable(self, model: ReplicaModel, elections: Sequence[ElectionState]) -> None:
        """These election states became durable, in this order: a vote counts, a leader may send.

        "Each server will vote for at most one candidate in a given term" (Raft, section 5.2).
        """
        for election in elections:
            self._count_vote(model, election)
            if election.leader_id == model.id:
                self._elected(model, election.epoch, model.initial_voters)

    def _count_vote(self, model: ReplicaModel, vote: ElectionState) -> None:
        if vote.voted is not None:
            self.history.granted_votes.setdefault(vote.epoch, set()).add((model.id, vote.voted.id))
            votes = self.history.votes.setdefault(vote.epoch, {})
            if vote.epoch <= model.votes_forgotten_to:
                votes[model.key] = vote.voted
            first = votes.setdefault(model.key, vote.voted)
            if first.id != vote.voted.id or (
                first.directory_id != vote.voted.directory_id
                and ZERO_UUID not in (first.directory_id, vote.voted.directory_id)
            ):
                raise ViolationError(
                    "one vote an epoch",
                    f"{model} votes for {vote.voted} in epoch {vote.epoch}, and voted for {first}",
                )

    def _elected(self, model: ReplicaModel, epoch: int, own_voters: tuple[Voter, ...]) -> None:
        history = self.history
        leadership = history.leaderships.get(epoch)
        if leadership is not None:
            if leadership.node_id != model.id or leadership.incarnation != model.incarnation:
                raise ViolationError(
                    "election safety",
                    f"epoch {epoch} has two leaders: node {leadership.node_id} "
                    f"(incarnation {leadership.incarnation}) and {model}",
                )
            return
        self._check_votes(model, epoch, own_voters)
        if history.committed.epoch < epoch and not model.tip.holds(history.committed):
            raise ViolationError(
                "leader completeness",
                f"{model} leads epoch {epoch} with the log up to {model.tip}, without the committed "
                f"{history.committed}",
            )
        history.leaderships[epoch] = Leadership(model.id, model.incarnation, model.tip)
        history.newest_led_epoch = max(history.newest_led_epoch, epoch)
        for entry in model.unpublished:
            history.add(entry, model)
        model.unpublished.clear()

    def _check_votes(self, model: ReplicaModel, epoch: int, own_voters: tuple[Voter, ...]) -> None:
        """A majority of the voters in force has durably voted for it, by id and directory id
        (KIP-853)."""
        first = model.unpublished[0].parent if model.unpublished else model.tip
        assert first is not None
        voters = first.voters or own_voters
        votes = self.history.votes.get(epoch, {})
        count = 0
        for voter in voters:
            for key, candidate in votes.items():
                if matches(voter.key, key) and candidate.id == model.id:
                    count += candidate.directory_id in (ZERO_UUID, model.key.directory_id)
                    break
        if count <= len(voters) // 2:
            raise ViolationError(
                "election safety",
                f"{model} leads epoch {epoch} by {count} durable votes of {names(voters)}",
            )


def check_no_candidate_beside_leader(model: ReplicaModel, state: RaftState) -> None:
    """A candidate knows no leader of its epoch."""
    leader = state.election.leader_id
    if isinstance(state.role, Candidate) and leader >= 0:
        raise ViolationError(
            "no candidate in an epoch with a leader",
            f"{model} is candidate of epoch {state.election.epoch}, which node {leader} leads",
        )


def check_electable(model: ReplicaModel, effects: Effects, state: RaftState) -> None:
    """The replica considers itself electable exactly when it is.

    Checked when a voter set comes into force and when the set becomes committed.
    """
    newest, change = model.tip.voters_entry, model.tip.change_entry
    is_open = change is not None and change.end > model.committed_tip.end
    if (
        newest is model.eligibility_batch and is_open is model.eligibility_uncommitted
    ) or effects.is_over:
        return
    model.eligibility_batch, model.eligibility_uncommitted = newest, is_open
    takes_itself = state.electable
    if takes_itself is not is_electable(model):
        but = (
            "is not electable, but would start an election"
            if takes_itself
            else "is electable, but never starts an election"
        )
        known = "not known to be" if is_open else "known to be"
        raise ViolationError(
            "election eligibility",
            f"{model} {but}; the voters {names(model.voters)} are {known} committed",
        )


def is_electable(model: ReplicaModel) -> bool:
    """Whether the replica may start an election.

    1. A voter may, but no other directory of its node id.
    2. A removed voter may until its removal is known to be committed. It may hold the only copy of
       that record (Raft dissertation, section 4.2.2).
    """
    named = [voter for voter in model.voters if voter.key.id == model.id]
    return is_voter(tuple(named), model.key) if named else _was_voter(model)


def _was_voter(model: ReplicaModel) -> bool:
    change = model.tip.change_entry
    if change is None or change.parent is None or change.end <= model.committed_tip.end:
        return False
    return is_voter(change.parent.voters or model.initial_voters, model.key)


def check_installing_replica_waits(model: ReplicaModel, role: Role) -> None:
    """A replica that installs a snapshot sends neither votes nor pre-votes: its log and voters are
    not known until the install ends."""
    if model.installing is not None and isinstance(role, Prospective | Candidate):
        raise ViolationError(
            "no election during a snapshot install",
            f"{model} starts an election after epoch {model.election.epoch} while a snapshot replaces "
            "its log",
        )


def met_peer_without_pre_vote(happened: Sequence[Input]) -> bool:
    """Whether a peer does not support the version of a request.

    Such a peer cannot answer pre-votes. The replica then becomes a candidate without them.
    """
    return any(
        isinstance(item, SendFailed) and item.failure is SendFailure.UNSUPPORTED_VERSION
        for item in happened
    )


def check_installed(
    model: ReplicaModel, happened: Sequence[Input], effects: Effects, state: RaftState
) -> None:
    """The fetch timeout restarts when a snapshot is installed.

    Checked in a step with nothing but disk results. The leader did not send during the install
    because the follower did not fetch.
    """
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
    raise ViolationError(
        "fetch timeout restarts after a snapshot install",
        f"{model} has installed a snapshot of epoch {state.election.epoch}, and its leader, "
        f"node {state.election.leader_id}, times out before the fetch timeout has passed",
    )


def _transition(old: ElectionState, new: ElectionState) -> str:
    return f"from {election_words(old)} to {election_words(new)}"
