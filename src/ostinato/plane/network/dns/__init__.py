"""Cluster DNS: names of Services, endpoints and Pods, answered by each machine with a service proxy.

There is no Pod that serves DNS. The Service `kube-dns` in kube-system has a fixed address and no selector; the service
proxy of each machine answers at that address itself, from the objects that it watches anyway. A Service `kube-dns` with
a selector (CoreDNS, for example) replaces it: then queries are relayed to its Pods.

| module | contains |
|---|---|
| `settings` | address and domain |
| `wire` | messages |
| `zone`, `directory` | records, and the objects that they are made of |
| `upstream` | names outside of the cluster |
| `server`, `listeners` | answers, over UDP and TCP |
| `service` | the Service `kube-dns` |
| `component` | all of it, for a manager |
"""
