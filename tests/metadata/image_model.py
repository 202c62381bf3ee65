"""A simple reference model of the image: plain dicts, changed in place, rules written out one by one."""

from __future__ import annotations

import copy
import struct
from typing import Any

from quorate.formats import records as r


class MisfitError(Exception):
    """The record does not fit."""


def need(condition):
    if not condition:
        raise MisfitError


def plain(image):
    """An image in the model's terms."""
    return {
        "mv": image.features.metadata_version,
        "features": dict(image.features.levels),
        "brokers": {i: node(b) for i, b in image.cluster.brokers.items()},
        "controllers": {i: node(c) for i, c in image.cluster.controllers.items()},
        "topics": {
            topic.id: {
                "name": topic.name,
                "partitions": {
                    index: {name: listed(value) for name, value in partition._asdict().items()}
                    for index, partition in topic.partitions.items()
                },
            }
            for topic in image.topics
        },
        "names": dict(image.topics.ids),
        "configs": {tuple(k): dict(v) for k, v in image.configs.items()},
        "quotas": {k: dict(v) for k, v in image.client_quotas.items()},
        "producer_id": image.next_producer_id,
        "acls": {k: tuple(v) for k, v in image.acls.items()},
        "scram": {tuple(k): tuple(v) for k, v in image.scram.items()},
        "tokens": {k: tuple(v) for k, v in image.delegation_tokens.items()},
    }


def listed(value):
    return list(value) if isinstance(value, tuple) else value


def node(found):
    out = {name: getattr(found, name) for name in found.__slots__}
    out["listeners"] = {e.name: (e.host, e.port, e.security_protocol) for e in found.listeners}
    out["features"] = {e.name: (e.min, e.max) for e in found.features}
    return {name: listed(value) for name, value in out.items()}


class ImageModel:
    """`state` is what `plain` gives; `apply` changes it, or raises MisfitError and leaves it."""

    def __init__(self):
        self.state: dict[str, Any] = {
            "mv": None,
            "features": {},
            "brokers": {},
            "controllers": {},
            "topics": {},
            "names": {},
            "configs": {},
            "quotas": {},
            "producer_id": -1,
            "acls": {},
            "scram": {},
            "tokens": {},
        }

    def apply(self, record):
        before = copy.deepcopy(self.state)
        try:
            getattr(self, type(record).__name__)(record, self.state)
        except MisfitError:
            self.state = before
            raise

    def RegisterBrokerRecord(self, it, state):
        need(all(e.name and e.security_protocol in (0, 1, 2, 3) for e in it.end_points))
        state["brokers"][it.broker_id] = {
            "id": it.broker_id,
            "epoch": it.broker_epoch,
            "incarnation_id": it.incarnation_id,
            "listeners": {e.name: (e.host, e.port, e.security_protocol) for e in it.end_points},
            "features": {
                f.name: (f.min_supported_version, f.max_supported_version) for f in it.features
            },
            "rack": it.rack,
            "fenced": it.fenced,
            "in_controlled_shutdown": it.in_controlled_shutdown,
            "is_migrating_zk_broker": it.is_migrating_zk_broker,
            "directories": sorted(it.log_dirs, key=lambda u: struct.unpack(">qq", u)),
            "cordoned_directories": it.cordoned_log_dirs,
        }

    def broker(self, state, broker_id, epoch):
        need(broker_id in state["brokers"])
        need(state["brokers"][broker_id]["epoch"] == epoch)
        return state["brokers"][broker_id]

    def UnregisterBrokerRecord(self, it, state):
        self.broker(state, it.broker_id, it.broker_epoch)
        del state["brokers"][it.broker_id]

    def FenceBrokerRecord(self, it, state):
        self.broker(state, it.id, it.epoch)["fenced"] = True

    def UnfenceBrokerRecord(self, it, state):
        self.broker(state, it.id, it.epoch)["fenced"] = False

    def BrokerRegistrationChangeRecord(self, it, state):
        broker = self.broker(state, it.broker_id, it.broker_epoch)
        need(it.fenced in (-1, 0, 1) and it.in_controlled_shutdown in (0, 1))
        if it.fenced == 1:
            broker["fenced"] = True
        if it.fenced == -1:
            broker["fenced"] = False
        if it.in_controlled_shutdown == 1:
            broker["in_controlled_shutdown"] = True
        if it.log_dirs:
            broker["directories"] = sorted(it.log_dirs, key=lambda u: struct.unpack(">qq", u))
        if it.cordoned_log_dirs is not None:
            broker["cordoned_directories"] = it.cordoned_log_dirs

    def RegisterControllerRecord(self, it, state):
        need(all(e.security_protocol in (0, 1, 2, 3) for e in it.end_points))
        state["controllers"][it.controller_id] = {
            "id": it.controller_id,
            "incarnation_id": it.incarnation_id,
            "zk_migration_ready": it.zk_migration_ready,
            "listeners": {e.name: (e.host, e.port, e.security_protocol) for e in it.end_points},
            "features": {},
        }

    def UnregisterControllerRecord(self, it, state):
        state["controllers"].pop(it.controller_id, None)

    def TopicRecord(self, it, state):
        need(it.name not in state["names"] and it.topic_id not in state["topics"])
        state["names"][it.name] = it.topic_id
        state["topics"][it.topic_id] = {"name": it.name, "partitions": {}}

    def RemoveTopicRecord(self, it, state):
        need(it.topic_id in state["topics"])
        name = state["topics"].pop(it.topic_id)["name"]
        del state["names"][name]
        state["configs"].pop((2, name), None)

    def PartitionRecord(self, it, state):
        need(it.topic_id in state["topics"])
        need(it.leader_recovery_state in (0, 1))
        replicas = len(it.replicas)
        need(not it.directories or len(it.directories) == replicas)
        state["topics"][it.topic_id]["partitions"][it.partition_id] = {
            "replicas": it.replicas,
            "directories": it.directories or [bytes(16)] * replicas,
            "isr": it.isr,
            "removing_replicas": it.removing_replicas,
            "adding_replicas": it.adding_replicas,
            "leader": it.leader,
            "leader_recovery_state": it.leader_recovery_state,
            "leader_epoch": it.leader_epoch,
            "partition_epoch": it.partition_epoch,
            "elr": it.eligible_leader_replicas or [],
            "last_known_elr": it.last_known_elr or [],
        }

    def PartitionChangeRecord(self, it, state):
        need(it.topic_id in state["topics"])
        partitions = state["topics"][it.topic_id]["partitions"]
        need(it.partition_id in partitions)
        found = partitions[it.partition_id]
        found["partition_epoch"] += 1
        if it.leader != -2:
            found["leader"] = it.leader
            found["leader_epoch"] += 1
        if it.leader_recovery_state != -1:
            need(it.leader_recovery_state in (0, 1))
            found["leader_recovery_state"] = it.leader_recovery_state
        for name in ("isr", "replicas", "directories", "removing_replicas", "adding_replicas"):
            if getattr(it, name) is not None:
                found[name] = getattr(it, name)
        if it.eligible_leader_replicas is not None:
            found["elr"] = it.eligible_leader_replicas
        if it.last_known_elr is not None:
            found["last_known_elr"] = it.last_known_elr
        replicas = len(found["replicas"])
        if it.replicas is not None and it.directories:
            need(len(it.directories) == replicas)
        if set(found["directories"]) <= {bytes(16)}:
            found["directories"] = [bytes(16)] * replicas
        need(len(found["directories"]) == replicas)

    def ClearElrRecord(self, it, state):
        need(not it.topic_name or it.topic_name in state["names"])
        for topic in state["topics"].values():
            if it.topic_name in ("", topic["name"]):
                for partition in topic["partitions"].values():
                    if partition["elr"] or partition["last_known_elr"]:
                        partition["elr"] = []
                        partition["last_known_elr"] = []
                        partition["partition_epoch"] += 1

    def ConfigRecord(self, it, state):
        configs = state["configs"].setdefault((it.resource_type, it.resource_name), {})
        configs[it.name] = it.value
        if it.value is None:
            del configs[it.name]
        if not configs:
            del state["configs"][it.resource_type, it.resource_name]

    def ClientQuotaRecord(self, it, state):
        names = {part.entity_type: part.entity_name for part in it.entity}
        entity = tuple(sorted(names.items(), key=lambda pair: pair[0]))
        quotas = state["quotas"].setdefault(entity, {})
        quotas[it.key] = it.value
        if it.remove:
            del quotas[it.key]
        if not quotas:
            del state["quotas"][entity]

    def FeatureLevelRecord(self, it, state):
        if it.name == "metadata.version":
            need(7 <= it.feature_level <= 34)
            state["mv"] = it.feature_level
        elif it.name != "kraft.version":
            state["features"][it.name] = it.feature_level
            if it.feature_level == 0:
                del state["features"][it.name]

    def ProducerIdsRecord(self, it, state):
        need(it.next_producer_id > state["producer_id"])
        state["producer_id"] = it.next_producer_id

    def AccessControlEntryRecord(self, it, state):
        state["acls"][it.id] = (
            it.resource_type,
            it.resource_name,
            it.pattern_type,
            it.principal,
            it.host,
            it.operation,
            it.permission_type,
        )

    def RemoveAccessControlEntryRecord(self, it, state):
        need(it.id in state["acls"])
        del state["acls"][it.id]

    def UserScramCredentialRecord(self, it, state):
        state["scram"][it.mechanism, it.name] = (
            it.salt,
            it.stored_key,
            it.server_key,
            it.iterations,
        )

    def RemoveUserScramCredentialRecord(self, it, state):
        need((it.mechanism, it.name) in state["scram"])
        del state["scram"][it.mechanism, it.name]

    def DelegationTokenRecord(self, it, state):
        need(all(":" in who for who in [it.owner, it.requester, *it.renewers]))
        state["tokens"][it.token_id] = (
            it.owner,
            it.requester,
            tuple(it.renewers),
            it.issue_timestamp,
            it.max_timestamp,
            it.expiration_timestamp,
        )

    def RemoveDelegationTokenRecord(self, it, state):
        state["tokens"].pop(it.token_id, None)

    def NoOpRecord(self, it, state):
        pass

    def ZkMigrationStateRecord(self, it, state):
        pass


MARKS = (r.BeginTransactionRecord, r.EndTransactionRecord, r.AbortTransactionRecord)
