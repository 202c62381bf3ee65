"""The state of a replica that the parts of the core share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.base.check import check
from quorate.base.ids import Address, LeaderAndEpoch, Listeners, OffsetAndEpoch, ReplicaKey
from quorate.base.notes import Warn
from quorate.raft.anomalies import Anomalies
from quorate.raft.durable import DurabilityTracker
from quorate.raft.history import ControlHistory
from quorate.raft.log_index import LogIndex
from quorate.raft.messages import Request
from quorate.raft.outbox import Outbox
from quorate.raft.ready import SaveElection, Send
from quorate.raft.requests import RequestManager
from quorate.raft.roles import (
    LEGAL_TRANSITIONS,
    NEVER,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorate.raft.values import ElectionState, RaftConfig, RecoveredLog, Voter
from quorate.raft.voters import VoterSet, address_of, listener_of

_FAILURES_BEFORE_VOTERS: Final = 3
"""An observer asks each bootstrap server this often before it asks the voters of its log."""


class RaftState:
    """One replica. Each fact is in one place: the class of the attribute that holds it."""

    __slots__ = (
        "anomalies",
        "config",
        "controls",
        "durable",
        "election",
        "high_watermark",
        "installing",
        "listener",
        "log",
        "me",
        "now",
        "out",
        "random",
        "reported_leader",
        "requests",
        "role",
        "shutdown_deadline",
    )

    def __init__(
        self,
        config: RaftConfig,
        election: ElectionState | None,
        log: RecoveredLog,
        random: Callable[[], float],
    ) -> None:
        self.config = config
        self.me = ReplicaKey(config.node_id, config.directory_id)
        self.listener = config.listeners[0].name if config.listeners else None
        self.random = random
        self.now = 0
        self.log = LogIndex(log, config.limits.border_window)
        self.controls = ControlHistory(VoterSet(config.static_voters), log)
        self.durable = DurabilityTracker(log.end_offset)
        self.out = Outbox(self.durable)
        self.anomalies = Anomalies()
        self.requests = RequestManager(
            self._bootstrap(), config.retry_backoff_ms, config.retry_backoff_max_ms
        )
        self.election = election or ElectionState()
        self.role: Role = Unattached(NEVER)
        newest = self.log.newest_snapshot
        self.high_watermark = newest.offset if newest is not None and newest.offset > 0 else -1
        """Known to be committed (exclusive); -1 unknown. A snapshot holds committed records."""
        self.installing: OffsetAndEpoch | None = None
        """The snapshot whose InstallSnapshot has not been answered: the log stands still."""
        self.shutdown_deadline: int | None = None
        self.reported_leader = LeaderAndEpoch(-1, -1)
        """The last Ready.leader."""

    def _bootstrap(self) -> tuple[tuple[int, Address], ...]:
        if self.config.bootstrap_servers:
            servers = self.config.bootstrap_servers
            return tuple((-2 - i, Address(*server)) for i, server in enumerate(servers))
        return self._voters_elsewhere()

    def _voters_elsewhere(self) -> tuple[tuple[int, Address], ...]:
        found = []
        for voter in self.controls.voters.voters:
            address = address_of(voter.listeners, self.listener)
            if address is not None and voter.key.id != self.config.node_id:
                found.append((voter.key.id, address))
        return tuple(found)

    def servers(self) -> tuple[tuple[int, Address], ...]:
        """The servers to ask who leads: (id, address), without the silent leader itself.

        The bootstrap servers; without any, the voters. An observer that asked all bootstrap servers
        several times in vain also asks the voters of its log: the configured servers may all have
        left the voter set. Kafka's observers ask the bootstrap servers only.
        """
        if not self.requests.bootstrap:
            self.requests.bootstrap = self._bootstrap()
        servers = self.requests.bootstrap
        if self.is_voter or not self.config.bootstrap_servers:
            return servers
        if any(self.requests.failures(node_id) < _FAILURES_BEFORE_VOTERS for node_id, _ in servers):
            return servers
        leader_id = self.leader_id if isinstance(self.role, Follower) else -1
        known = {address for _, address in servers}
        return servers + tuple(
            (voter_id, address)
            for voter_id, address in self._voters_elsewhere()
            if voter_id != leader_id and address not in known
        )

    # -- facts -------------------------------------------------------------------------------
    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def leader_id(self) -> int:
        return self.election.leader_id

    @property
    def voters(self) -> VoterSet:
        return self.controls.voters

    @property
    def is_voter(self) -> bool:
        return self.controls.voters.is_voter(self.me)

    @property
    def electable(self) -> bool:
        """May this replica be elected?

        1. A voter may. Its id with another directory id may not: votes are counted by id.
        2. So may a voter of the previous set, while the present set is not known to be committed.
           It may hold the only copy of the record that removes it. No voter of the new set is then
           up to date, so no other voter can be elected (Raft dissertation, section 4.2.2). In Kafka
           an observer never starts an election.
        """
        controls = self.controls
        if controls.voters.get(self.me.id) is not None:
            return controls.voters.is_voter(self.me)
        change = controls.replaced_voters
        if change is None:
            return False
        offset, replaced = change
        return offset >= self.high_watermark and replaced.is_voter(self.me)

    @property
    def leader_and_epoch(self) -> LeaderAndEpoch:
        """The leader and epoch that responses contain."""
        return LeaderAndEpoch(self.election.leader_id, self.election.epoch)

    @property
    def leader_endpoints(self) -> Listeners:
        """The leader's endpoints that responses contain; empty where they are not known."""
        role = self.role
        if isinstance(role, Follower | Prospective):
            return role.leader_endpoints
        return self.config.listeners if isinstance(role, Leader | Resigned) else ()

    @property
    def visible_leader(self) -> LeaderAndEpoch:
        """The leader that the state machine sees: a Resigned replica leads no longer, although
        quorum-state and responses still name it for the epoch."""
        election = self.election
        if isinstance(self.role, Resigned):
            return LeaderAndEpoch(-1, election.epoch)
        return LeaderAndEpoch(election.leader_id, election.epoch)

    @property
    def own_voter(self) -> Voter:
        """This node's entry as it should stand in the voter set."""
        config = self.config
        return Voter(self.me, config.listeners, config.min_kraft_version, config.max_kraft_version)

    @property
    def lowest_truncation_offset(self) -> int:
        """Inclusive: below it the log is committed, or in a snapshot."""
        newest = self.log.newest_snapshot
        return max(self.high_watermark, self.log.start_offset, newest.offset if newest else 0)

    def usable(self, listeners: Listeners) -> Address | None:
        return address_of(listeners, self.listener)

    def warn_of_no_address(self, voter_id: int) -> None:
        """Warn of a voter without a listener of the name by which this node finds addresses."""
        others = ", ".join(listener.name for listener in self.voters.listeners(voter_id))
        self.warn_sparingly(
            f"no address of {voter_id}",
            f"voter {voter_id} has no address under {self.listener}, this node's first listener in "
            f"controller.listener.names, but under {others or 'none at all'}: name first one that "
            "all voters have",
        )

    def endpoints_of(self, leader_id: int, given: Listeners) -> Listeners:
        """The endpoints of a leader: as given, else as the voter set has them."""
        if leader_id < 0:
            return ()
        is_usable = listener_of(given, self.listener) is not None
        return given if is_usable else self.voters.listeners(leader_id)

    def id_and_address(self, node_id: int, endpoints: Listeners) -> str:
        """A node for warnings: its id, and where to find it.

        Its key may be another one than the voter set has for this id.
        """
        return f"{node_id} at {self.usable(endpoints) or 'an unknown address'}"

    # -- notes, requests, changes of state ---------------------------------------------------
    def note(self, text: str) -> None:
        self.out.notes.append(text)

    def warn(self, text: str) -> None:
        self.out.notes.append(Warn(text))

    def note_sparingly(self, what: str, text: str) -> None:
        """Note at most once a minute for each `what`: peers may cause it at any rate."""
        if self.anomalies.should_report(what, self.now):
            self.note(text)

    def warn_sparingly(self, what: str, text: str) -> None:
        if self.anomalies.should_report(what, self.now):
            self.warn(text)

    def send(self, to: int, address: Address, request: Request) -> int:
        """Send a request; its correlation id. The caller has checked `requests.ready`."""
        timeout = self.config.request_timeout_ms
        correlation = self.requests.sent(to, address, request, self.now + timeout)
        self.out.sends.append(Send(correlation, to, address, request, timeout))
        return correlation

    def commit(self, offset: int) -> None:
        """Raise the high watermark; it never falls."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.out.high_watermark = offset

    def election_timeout(self) -> int:
        """A deadline (ms): one to two election timeouts from now, at random, as in Kafka."""
        timeout = self.config.election_timeout_ms
        return self.now + timeout + int(self.random() * timeout)

    def save(self, election: ElectionState) -> None:
        """Store a new epoch, leader or vote; replies wait until it is durable (`Outbox.reply`)."""
        if election == self.election:
            return
        check(election.epoch >= self.election.epoch, "epoch fell", self.election, election)
        self.election = election
        self.out.write(SaveElection(election, self.controls.version, self.voters.ids))
        self.durable.saved_election()

    def enter(self, role: Role, why: str = "") -> None:
        """Enter a role. The caller ends what the old role has pending, after this."""
        transition = (type(self.role), type(role))
        names = (kind.__name__ for kind in transition)
        check(transition in LEGAL_TRANSITIONS, "illegal transition", *names)
        self.role = role
        self.note(f"epoch {self.epoch}: {self._title(role)}{why and f' ({why})'}")

    def _title(self, role: Role) -> str:
        if isinstance(role, Follower):
            kind = "follower" if self.is_voter else "observer"
            return f"{kind} of {self.leader_id}"
        title = type(role).__name__.lower()
        voted = self.election.voted
        if isinstance(role, Unattached | Prospective) and voted is not None:
            return f"{title}, voted for {voted}"
        return title

    def vote_for(self, key: ReplicaKey) -> None:
        self.save(replace(self.election, voted=key))


def remaining_or_new(state: RaftState) -> int:
    """The election deadline of an Unattached role: what is left of the present one, or a new one.

    `QuorumState.transitionToUnattached`.
    """
    role = state.role
    if not state.electable:
        return NEVER
    if isinstance(role, Candidate | Unattached | Resigned) and role.election_deadline < NEVER:
        return role.election_deadline
    if isinstance(role, Prospective) and not role.ballot.lost:
        return role.election_deadline
    return state.election_timeout()
