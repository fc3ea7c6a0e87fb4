"""Snapshots of an etcd: files as `etcdctl snapshot save` writes them, restored through the API of a running etcd."""
