"""Streams of Pods: exec, attach and port-forward over SPDY and WebSocket, for server, node and client.

| module | contents |
|---|---|
| `upgrade` | the answer that switches protocols, and the socket that follows |
| `session` | a command or a container's streams, and the loop that connects them with a client |
| `channels` | the client side over WebSocket: each message begins with its channel number |
| `spdy`, `spdy_frames` | SPDY/3.1: many streams over one connection; older clients and all kubelets use it |
| `spdy_command` | a client over SPDY, and a remote command as its client sees it |
| `ports` | port forwarding over either protocol |
| `inbox` | a bounded buffer between a sender and a reader |

Node agents answer with these; so does the API server for agents on other machines.
"""
