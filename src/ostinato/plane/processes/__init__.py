"""The control plane in several processes: what runs in each of them.

| module | contents |
|---|---|
| `server_process` | the API server, with a Unix socket for the other processes |
| `component_process` | some of the components, connected to that socket |
| `node_listener` | the socket through which the API server reaches the agents of nodes |

`ostinato.cli.processes` starts, watches and stops them.
"""
