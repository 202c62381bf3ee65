"""Bugs that listen to another cluster, and some for which rare things have to come together."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

STRANGERS = (
    Mutant(
        "foreign-fetch-served",
        "a replica of another cluster is served, and counts",
        "raft.leading",
        "    if wrong_cluster(s, request.cluster_id):\n"
        "        s.out.reply(reply_to, bare_refusal(request, ErrorCode.INCONSISTENT_CLUSTER_ID))\n"
        "        return\n"
        "    last =",
        "    last =",
    ),
    Mutant(
        "foreign-vote-heard",
        "a candidate of another cluster is given a vote",
        "raft.election",
        "    if wrong_cluster(s, request.cluster_id):\n",
        "    if False:\n",
    ),
    Mutant(
        "foreign-epochs-heard",
        "a leader of another cluster is followed, and ends an epoch of this one",
        "raft.epochs",
        "    if wrong_cluster(s, cluster_id):\n",
        "    if False:\n",
    ),
    Mutant(
        "voters-forgotten-one-too-far",
        "a snapshot makes forget the voter set that a record right behind it replaced",
        "raft.snapshots",
        "s.controls.compact(event.snapshot_id.offset - 1)",
        "s.controls.compact(event.snapshot_id.offset)",
    ),
    Mutant(
        "cache-counts-as-medium",
        "what recovery found in the system's cache counts as durable, and is not synced",
        "storage.recovery",
        "        segment.file.sync()\n    disk.sync()",
        "        pass\n    disk.sync()",
    ),
)
