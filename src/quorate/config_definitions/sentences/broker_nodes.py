"""Configs of brokers and controllers: ids, listeners, connections, threads, the quorum, quotas, metrics."""
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

SENTENCES: Final = """\
node.id: The node's number in its cluster.
broker.id: An older name of node.id.
broker.rack: The rack of the broker; replicas are spread over racks, and consumers read from their own rack.
process.roles: What the node is: broker, controller, or both.
num.io.threads: Threads that handle requests.
num.network.threads: Threads of each listener that read requests and write responses.
background.threads: Threads for various tasks in the background.
request.timeout.ms: How long the node waits for the response to its own requests.
queued.max.requests: How many requests wait before no more are read.
queued.max.request.bytes: How many bytes of requests wait before no more are read; -1 for no limit.
socket.connection.setup.timeout.ms: First time limit for setting up a connection; it grows with each failure.
socket.connection.setup.timeout.max.ms: Longest time limit for setting up a connection.
socket.send.buffer.bytes: Send buffer of the sockets; -1 for that of the operating system.
socket.receive.buffer.bytes: Receive buffer of the sockets; -1 for that of the operating system.
socket.request.max.bytes: Largest request.
socket.listen.backlog.size: How many connections may wait to be accepted.
config.providers: Names of the providers that replace ${provider:path:key} in values.
early.start.listeners: Listeners that open before the authorizer has loaded its rules.
controlled.shutdown.enable: Whether a broker hands over its leaderships before it stops.
delete.topic.enable: Whether topics may be deleted.
max.incremental.fetch.session.cache.slots: Most fetch sessions that are kept.
fetch.max.bytes: Most bytes of the response to a fetch.
max.request.partition.size.limit: Most partitions in one request that asks about partitions.
unstable.api.versions.enable: Whether versions of APIs that are in development are offered.
unstable.feature.versions.enable: Whether levels of features that are in development may be used.
initial.broker.registration.timeout.ms: How long a starting broker tries to register.
server.max.startup.time.ms: How long the start of a node may take.
broker.heartbeat.interval.ms: Time between two heartbeats of a broker to the controller.
broker.session.timeout.ms: Time without a heartbeat after which the controller fences a broker.
listeners: Addresses on which the node listens, as name://host:port.
advertised.listeners: Addresses by which others reach the node, where they differ from listeners.
listener.security.protocol.map: Security protocol of each listener, as name:protocol.
inter.broker.listener.name: Listener through which brokers reach each other.
controller.listener.names: Listeners of the controllers; brokers use the first one.
max.connections: Most connections of the node, and of a listener with its prefix.
max.connections.per.ip: Most connections from one address.
max.connections.per.ip.overrides: Limits of single hosts, as host:number.
max.connection.creation.rate: Most new connections in a second.
connections.max.idle.ms: How long an idle connection stays open.
connection.failed.authentication.delay.ms: How long the answer to a failed authentication is delayed.
auto.leader.rebalance.enable: Whether the controller moves leaderships back to the preferred replicas.
leader.imbalance.check.interval.seconds: How often the controller looks for leaderships to move back.
unclean.leader.election.interval.ms: How often the controller looks for partitions that may elect an unclean leader.
create.topic.policy.class.name: Java class that may refuse new topics.
alter.config.policy.class.name: Java class that may refuse changes of configs.
controller.quorum.voters: Voters of a static quorum, as id@host:port.
controller.quorum.bootstrap.servers: Addresses at which a node of a dynamic quorum finds the others.
controller.quorum.election.timeout.ms: How long a candidate waits for votes before it begins a new election.
controller.quorum.fetch.timeout.ms: Longest time without a Fetch answer of the leader, or, for a leader, without Fetches of a majority.
controller.quorum.election.backoff.max.ms: Longest random pause after an election without a winner.
controller.quorum.append.linger.ms: How long a leader gathers records for a batch.
controller.quorum.request.timeout.ms: How long a node waits for a response of another node of the quorum.
controller.quorum.retry.backoff.ms: Pause before a failed request to a node of the quorum is repeated.
controller.quorum.auto.join.enable: Whether a controller adds itself to the voters of a dynamic quorum.
controller.quorum.fetch.max.bytes: Most bytes of the metadata log in one fetch.
controller.quorum.fetch.snapshot.max.bytes: Most bytes of a snapshot in one fetch.
controller.performance.sample.period.ms: Period of the report about the controller's event queue.
controller.performance.always.log.threshold.ms: Duration of a controller event from which on it is logged.
metrics.num.samples: How many samples a metric keeps.
metrics.sample.window.ms: Time of one sample of a metric.
metric.reporters: Classes that report metrics.
metrics.recording.level: Which metrics are recorded: INFO, DEBUG or TRACE.
kafka.metrics.reporters: Classes that report the older kind of metrics.
kafka.metrics.polling.interval.secs: How often the reporters of the older metrics look at them.
telemetry.max.bytes: Most bytes of metrics in one report of a client.
quota.window.num: How many samples the quotas of clients keep.
quota.window.size.seconds: Time of one sample of the quotas of clients.
replication.quota.window.num: How many samples the quotas of replication keep.
replication.quota.window.size.seconds: Time of one sample of the quotas of replication.
alter.log.dirs.replication.quota.window.num: How many samples the quota of moves between directories keeps.
alter.log.dirs.replication.quota.window.size.seconds: Time of one sample of that quota.
controller.quota.window.num: How many samples the quotas of changes to topics keep.
controller.quota.window.size.seconds: Time of one sample of the quotas of changes to topics.
client.quota.callback.class: Class that decides on the quotas of clients.
"""
