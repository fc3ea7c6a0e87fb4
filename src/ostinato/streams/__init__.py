"""Streams of Pods: exec, attach and port-forward over SPDY and WebSocket, for server, node and client.

| module | contents |
|---|---|
| `upgrade` | the response that switches protocols, and the socket after it |
| `session` | a command or a container's streams, and the loop that connects them with a client |
| `channels` | the client side over WebSocket: each message begins with its channel number |
| `spdy`, `spdy_frames` | SPDY/3.1: many streams over one connection; older clients and all kubelets use it |
| `spdy_command` | both sides of a command over SPDY: the client of a session, and a session on another machine |
| `ports` | port forwarding over either protocol |
| `inbox` | a bounded buffer between a sender and a reader |

Node agents serve clients with these, and so does the API server, as a proxy of agents on other machines.
"""
