"""The state of a replica that the parts of the core share, and its moves between roles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.base.check import check
from quorate.base.ids import Address, LeaderAndEpoch, Listeners, OffsetAndEpoch, ReplicaKey
from quorate.base.notes import Warn
from quorate.raft.doubts import Doubts
from quorate.raft.durable import Durable
from quorate.raft.history import Controls
from quorate.raft.log_index import LogIndex
from quorate.raft.messages import Request
from quorate.raft.outbox import Outbox
from quorate.raft.ready import SaveElection, Send
from quorate.raft.requests import Requests
from quorate.raft.roles import (
    LEGAL_MOVES,
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

_IN_VAIN: Final = 3
"""So often each bootstrap server is asked before others are."""


class State:
    """One replica. Each fact has one owner: see the class of each attribute."""

    __slots__ = (
        "config",
        "controls",
        "doubts",
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
        "requests",
        "role",
        "shutdown_deadline",
        "told",
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
        self.controls = Controls(VoterSet(config.static_voters), log)
        self.durable = Durable(log.end_offset)
        self.out = Outbox(self.durable)
        self.doubts = Doubts()
        self.requests = Requests(self._bootstrap(), config.retry_backoff_ms)
        self.election = election or ElectionState()
        self.role: Role = Unattached(NEVER)
        newest = self.log.newest_snapshot
        self.high_watermark = newest.offset if newest is not None and newest.offset > 0 else -1
        """Known to be committed (exclusive); -1 unknown. A snapshot holds committed records."""
        self.installing: OffsetAndEpoch | None = None
        """The snapshot whose InstallSnapshot has not been answered: the log stands still."""
        self.shutdown_deadline: int | None = None
        self.told = LeaderAndEpoch(-1, -1)
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
        """Whom to ask who leads, but the leader itself, which does not answer.

        Where there was nobody at the start, the voters of now. Better than Kafka: an observer that
        has asked all bootstrap servers in vain, and more than once, asks the voters of its log
        too: the bootstrap servers may all have left the set.
        """
        if not self.requests.bootstrap:
            self.requests.bootstrap = self._bootstrap()
        servers = self.requests.bootstrap
        if self.is_voter or not self.config.bootstrap_servers:
            return servers
        if any(self.requests.failures(node_id) < _IN_VAIN for node_id, _ in servers):
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
        """May this replica run for leader?

        As a voter; and as one that was a voter before the present ones, while they are not
        known to be committed: it may hold the only record of its own removal, and then nobody
        else can be elected (Raft, section 4.2.2; Kafka's observers never run). Never beside a
        voter with this id and another directory: votes are counted by id.
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
        """As answers tell it."""
        return LeaderAndEpoch(self.election.leader_id, self.election.epoch)

    @property
    def leader_endpoints(self) -> Listeners:
        """As answers tell them; empty where not known."""
        role = self.role
        if isinstance(role, Follower | Prospective):
            return role.leader_endpoints
        return self.config.listeners if isinstance(role, Leader | Resigned) else ()

    @property
    def visible_leader(self) -> LeaderAndEpoch:
        """As the state machine sees it: a resigned leader leads no more."""
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
    def committed_floor(self) -> int:
        """No truncation may go below this: committed, or no longer in the log."""
        newest = self.log.newest_snapshot
        return max(self.high_watermark, self.log.start_offset, newest.offset if newest else 0)

    def usable(self, listeners: Listeners) -> Address | None:
        return address_of(listeners, self.listener)

    def warn_of_no_address(self, voter_id: int) -> None:
        """Of a voter that has nothing under the name by which this node looks addresses up."""
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

    # -- small deeds -------------------------------------------------------------------------
    def note(self, text: str) -> None:
        self.out.notes.append(text)

    def warn(self, text: str) -> None:
        self.out.notes.append(Warn(text))

    def note_sparingly(self, what: str, text: str) -> None:
        """Once a minute for each `what`: a peer may cause it as often as it likes."""
        if self.doubts.may_say(what, self.now):
            self.note(text)

    def warn_sparingly(self, what: str, text: str) -> None:
        if self.doubts.may_say(what, self.now):
            self.warn(text)

    def send(self, to: int, address: Address, request: Request) -> int:
        """Send now; its correlation id. The caller made sure that the node is ready."""
        timeout = self.config.request_timeout_ms
        correlation = self.requests.sent(to, request, self.now + timeout)
        self.out.sends.append(Send(correlation, to, address, request, timeout))
        return correlation

    def commit(self, offset: int) -> None:
        """Raise the high watermark; it never falls."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.out.high_watermark = offset

    def election_timeout(self) -> int:
        """A deadline: election timeout plus up to as much again by chance."""
        timeout = self.config.election_timeout_ms
        return self.now + timeout + int(self.random() * timeout)

    def save(self, election: ElectionState) -> None:
        """A new epoch, leader or vote: durable before it is spoken of."""
        if election == self.election:
            return
        check(election.epoch >= self.election.epoch, "epoch fell", self.election, election)
        self.election = election
        self.out.write(SaveElection(election, self.controls.version, self.voters.ids))
        self.durable.saved_election()

    def enter(self, role: Role, why: str = "") -> None:
        """Take a role. What the old one still owes is settled by the caller, after this."""
        move = (type(self.role), type(role))
        check(move in LEGAL_MOVES, "illegal move", move[0].__name__, move[1].__name__)
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


def remaining_or_new(state: State) -> int:
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
