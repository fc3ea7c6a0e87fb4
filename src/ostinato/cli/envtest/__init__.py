"""`ostinato envtest`: programs with the names and flags that envtest of controller-runtime starts.

| module | contents |
|---|---|
| `assets` | the directory with the entry points `etcd`, `kube-apiserver` and `kubectl` |
| `__main__` | the process of an entry point |
| `etcd`, `etcd_flags` | etcd: answers health checks and hands its data directory to kube-apiserver |
| `apiserver`, `apiserver_flags` | kube-apiserver: the API server with its state in that directory |
| `handover` | the request for that directory |
| `flags` | flags in Go's notation |
| `parent` | the end of the process that started an entry point |
"""
