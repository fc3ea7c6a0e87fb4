"""The scheduler's view of the cluster: Pods and nodes, the snapshot, and listers of other kinds."""
