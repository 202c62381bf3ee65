"""The invariants of a simulated world: checked after every event and at its end.

`all_checks.Checks` is the observer. It keeps a reference model of each replica from outside the
replica: the log that the replica has, and the state that its disk would return after a crash.
Batches are interned in one tree for the whole world. Equal logs are therefore equal objects, and no
check compares two logs entry by entry.

replica_model      the reference model of a replica
recovery           its state after a restart
received_requests  what reached a leader
history            the tree of batches
message_checks     which check sees which message

Each of the other modules checks one duty of a replica, a client or the cluster.
"""
