"""The control plane: controllers, scheduler, nodes and networking around an API server.

Each component is a controller on `ostinato.controllers`, like any operator. Components use the API server only and do
not call each other.

| package | contains |
|---|---|
| `plane`, `processes` | assembly: API server and components in one process, or in several |
| `parts`, `names` | the components, their settings and names |
| `controllers` | the controllers of kube-controller-manager |
| `scheduler` | kube-scheduler: queue, framework, plugins |
| `node` | node agents (kubelet) and container runtimes |
| `network` | Pod networks and the service proxy of this machine |
| `endpoints`, `ownership`, `placement`, `objects`, `access` | what several components share |
"""
