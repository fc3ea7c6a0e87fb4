"""The ReplicaSet controller, which also serves ReplicationControllers."""
