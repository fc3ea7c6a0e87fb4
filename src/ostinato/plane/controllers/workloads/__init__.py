"""Controllers of workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob."""
