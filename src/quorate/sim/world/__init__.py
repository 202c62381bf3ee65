"""A simulated world: processes, disks, network, clients and faults."""
