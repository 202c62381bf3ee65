"""The APIs of Kafka 4.4.0, with the versions that its clients speak (`ApiKeys`).

A test compares the table with the message definitions in Kafka's jars.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

_TABLE: Final = """\
0 Produce 3 13 b
1 Fetch 4 18 b
2 ListOffsets 1 11 b
3 Metadata 0 13 b
4 LeaderAndIsr - - -
5 StopReplica - - -
6 UpdateMetadata - - -
7 ControlledShutdown - - -
8 OffsetCommit 2 10 b
9 OffsetFetch 1 10 b
10 FindCoordinator 0 6 b
11 JoinGroup 0 9 b
12 Heartbeat 0 4 b
13 LeaveGroup 0 5 b
14 SyncGroup 0 5 b
15 DescribeGroups 0 6 b
16 ListGroups 0 5 b
17 SaslHandshake 0 1 b
18 ApiVersions 0 5 b
19 CreateTopics 2 7 b
20 DeleteTopics 1 6 b
21 DeleteRecords 0 2 b
22 InitProducerId 0 6 b
23 OffsetForLeaderEpoch 2 4 b
24 AddPartitionsToTxn 0 5 b
25 AddOffsetsToTxn 0 4 b
26 EndTxn 0 5 b
27 WriteTxnMarkers 1 2 b
28 TxnOffsetCommit 0 6 b
29 DescribeAcls 1 3 b
30 CreateAcls 1 3 b
31 DeleteAcls 1 3 b
32 DescribeConfigs 1 4 b
33 AlterConfigs 0 2 b
34 AlterReplicaLogDirs 1 2 b
35 DescribeLogDirs 1 5 b
36 SaslAuthenticate 0 2 b
37 CreatePartitions 0 3 b
38 CreateDelegationToken 1 3 b
39 RenewDelegationToken 1 2 b
40 ExpireDelegationToken 1 2 b
41 DescribeDelegationToken 1 3 b
42 DeleteGroups 0 3 b
43 ElectLeaders 0 2 b
44 IncrementalAlterConfigs 0 1 b
45 AlterPartitionReassignments 0 1 b
46 ListPartitionReassignments 0 0 b
47 OffsetDelete 0 0 b
48 DescribeClientQuotas 0 1 b
49 AlterClientQuotas 0 1 b
50 DescribeUserScramCredentials 0 0 b
51 AlterUserScramCredentials 0 0 b
52 Vote 0 2 -
53 BeginQuorumEpoch 0 1 -
54 EndQuorumEpoch 0 1 -
55 DescribeQuorum 0 2 b
56 AlterPartition 2 3 -
57 UpdateFeatures 0 2 b
58 Envelope 0 0 -
59 FetchSnapshot 0 1 -
60 DescribeCluster 0 2 b
61 DescribeProducers 0 0 b
62 BrokerRegistration 0 4 -
63 BrokerHeartbeat 0 2 -
64 UnregisterBroker 0 0 b
65 DescribeTransactions 0 0 b
66 ListTransactions 0 2 b
67 AllocateProducerIds 0 0 -
68 ConsumerGroupHeartbeat 0 1 b
69 ConsumerGroupDescribe 0 1 b
70 ControllerRegistration 0 0 -
71 GetTelemetrySubscriptions 0 0 b
72 PushTelemetry 0 0 b
73 AssignReplicasToDirs 0 0 -
74 ListConfigResources 0 1 b
75 DescribeTopicPartitions 0 0 b
76 ShareGroupHeartbeat 1 1 b
77 ShareGroupDescribe 1 1 b
78 ShareFetch 1 2 b
79 ShareAcknowledge 1 2 b
80 AddRaftVoter 0 1 b
81 RemoveRaftVoter 0 0 b
82 UpdateRaftVoter 0 0 -
83 InitializeShareGroupState 0 0 b
84 ReadShareGroupState 0 0 b
85 WriteShareGroupState 0 1 b
86 DeleteShareGroupState 0 0 b
87 ReadShareGroupStateSummary 0 1 b
88 StreamsGroupHeartbeat 0 1 b
89 StreamsGroupDescribe 0 1 b
90 DescribeShareGroupOffsets 0 1 b
91 AlterShareGroupOffsets 0 0 b
92 DeleteShareGroupOffsets 0 0 b
93 StreamsGroupTopologyDescriptionUpdate 0 0 b
94 UnregisterController 0 0 b
"""
"""Lines of: key, name, lowest and highest version (`-` for none), and `b` if brokers serve it."""


class KafkaApi(NamedTuple):
    """An API of Kafka; versions inclusive, None where no version is left."""

    key: int
    name: str
    versions: tuple[int, int] | None
    on_brokers: bool


@cache
def kafka_apis() -> dict[int, KafkaApi]:
    """Return Kafka's APIs by key, in order."""
    found = {}
    for line in _TABLE.splitlines():
        key, name, low, high, client = line.split()
        versions = None if low == "-" else (int(low), int(high))
        found[int(key)] = KafkaApi(int(key), name, versions, client == "b")
    return found
