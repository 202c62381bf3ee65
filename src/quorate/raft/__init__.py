"""The consensus core: KRaft without clock, randomness, disk or network (KIP-595, 630, 853, 996).

`RaftCore.step` takes events (`inputs`) and returns one `Ready`: what to write, send and answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.raft.alter import AddStep, AlterVotersError, RemoveStep, Step, plan
    from quorate.raft.core import RaftCore
    from quorate.raft.describe import QuorumDescription, ReplicaDescription
    from quorate.raft.inputs import (
        Answered,
        CleanTo,
        ConnectionLost,
        Event,
        InstallFailed,
        Persisted,
        Propose,
        Received,
        Resign,
        SendFailed,
        SendFailure,
        Shutdown,
        SnapshotCreated,
        SnapshotInstalled,
        StorageFailed,
        UpgradeKRaftVersion,
    )
    from quorate.raft.messages import (
        AddVoterRequest,
        AddVoterResponse,
        ApiVersionsRequest,
        ApiVersionsResponse,
        BeginQuorumEpochRequest,
        BeginQuorumEpochResponse,
        EndQuorumEpochRequest,
        EndQuorumEpochResponse,
        FetchRequest,
        FetchResponse,
        FetchSnapshotRequest,
        FetchSnapshotResponse,
        ReadChunk,
        ReadRange,
        RemoveVoterRequest,
        RemoveVoterResponse,
        Request,
        Response,
        UpdateVoterRequest,
        UpdateVoterResponse,
        VoteRequest,
        VoteResponse,
    )
    from quorate.raft.ready import (
        AbandonSnapshot,
        Accepted,
        Append,
        Clean,
        InstallSnapshot,
        Ready,
        Refused,
        Reply,
        SaveElection,
        Send,
        SnapshotChunk,
        Truncate,
        Write,
    )
    from quorate.raft.values import (
        Batch,
        ControlRecord,
        ControlState,
        ElectionState,
        KRaftVersion,
        LeaderChange,
        RaftConfig,
        RaftLimits,
        RecoveredLog,
        Voter,
        Voters,
    )
    from quorate.raft.voters import VoterSet
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "alter": "AddStep AlterVotersError RemoveStep Step plan",
            "core": "RaftCore",
            "describe": "QuorumDescription ReplicaDescription",
            "inputs": "Answered CleanTo ConnectionLost Event InstallFailed Persisted Propose "
            "Received Resign SendFailed SendFailure Shutdown SnapshotCreated "
            "SnapshotInstalled StorageFailed UpgradeKRaftVersion",
            "messages": "AddVoterRequest AddVoterResponse ApiVersionsRequest ApiVersionsResponse "
            "BeginQuorumEpochRequest BeginQuorumEpochResponse EndQuorumEpochRequest "
            "EndQuorumEpochResponse FetchRequest FetchResponse FetchSnapshotRequest "
            "FetchSnapshotResponse ReadChunk ReadRange RemoveVoterRequest "
            "RemoveVoterResponse Request Response UpdateVoterRequest "
            "UpdateVoterResponse VoteRequest VoteResponse",
            "ready": "AbandonSnapshot Accepted Append Clean InstallSnapshot Ready Refused Reply "
            "SaveElection Send SnapshotChunk Truncate Write",
            "values": "Batch ControlRecord ControlState ElectionState KRaftVersion LeaderChange "
            "RaftConfig RaftLimits RecoveredLog Voter Voters",
            "voters": "VoterSet",
        },
    )

__all__ = [
    "AbandonSnapshot",
    "Accepted",
    "AddStep",
    "AddVoterRequest",
    "AddVoterResponse",
    "AlterVotersError",
    "Answered",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "Append",
    "Batch",
    "BeginQuorumEpochRequest",
    "BeginQuorumEpochResponse",
    "Clean",
    "CleanTo",
    "ConnectionLost",
    "ControlRecord",
    "ControlState",
    "ElectionState",
    "EndQuorumEpochRequest",
    "EndQuorumEpochResponse",
    "Event",
    "FetchRequest",
    "FetchResponse",
    "FetchSnapshotRequest",
    "FetchSnapshotResponse",
    "InstallFailed",
    "InstallSnapshot",
    "KRaftVersion",
    "LeaderChange",
    "Persisted",
    "Propose",
    "QuorumDescription",
    "RaftConfig",
    "RaftCore",
    "RaftLimits",
    "ReadChunk",
    "ReadRange",
    "Ready",
    "Received",
    "RecoveredLog",
    "Refused",
    "RemoveStep",
    "RemoveVoterRequest",
    "RemoveVoterResponse",
    "ReplicaDescription",
    "Reply",
    "Request",
    "Resign",
    "Response",
    "SaveElection",
    "Send",
    "SendFailed",
    "SendFailure",
    "Shutdown",
    "SnapshotChunk",
    "SnapshotCreated",
    "SnapshotInstalled",
    "Step",
    "StorageFailed",
    "Truncate",
    "UpdateVoterRequest",
    "UpdateVoterResponse",
    "UpgradeKRaftVersion",
    "VoteRequest",
    "VoteResponse",
    "Voter",
    "VoterSet",
    "Voters",
    "Write",
    "plan",
]
