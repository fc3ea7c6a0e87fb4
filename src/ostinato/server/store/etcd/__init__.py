"""The store on etcd: keys, values and leases as kube-apiserver has them, so that both can use the same etcd.

`EtcdIndex` is the index of one of any number of servers; etcd's revisions are the resourceVersions.
"""
