"""Node agents, in kubelet's terms: run the Pods that are bound to a node and report their status.

| module | component |
|---|---|
| `agent` | sync loop: a reconciler of Pods, with a pod worker for each |
| `pod_manager`, `static_pods` | desired Pods, from the API server and from manifests |
| `pod_worker` | syncs and terminates one Pod; owns its `containers` |
| `containers` | records, start, stop, hooks and termination messages of a Pod's containers |
| `pod_status`, `status_manager` | the API status of a Pod, and its updates |
| `probes`, `volumes`, `environment` | probe manager, volume manager, container environment |
| `registration`, `credentials` | Node object, heartbeat and readiness; certificates and discovery |
| `server` | the node's HTTPS API |
| `runtimes` | container runtimes: processes, containerd, simulated |
| `fleet`, `joined_node` | add nodes to a manager; a node that joins a cluster |
"""
