"""The apps group: Deployments, ReplicaSets, StatefulSets, DaemonSets, ControllerRevisions."""
