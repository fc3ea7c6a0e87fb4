"""Streaming: commands, terminals and ports of Pods over connections that go both ways.

| module | is |
|---|---|
| `session` | what runs at the other end, and the loop that ties it to a client |
| `channels` | a client over WebSocket: messages that begin with the number of their stream |
| `spdy`, `spdy_frames` | SPDY/3.1: many streams over one connection, which older clients and all kubelets speak |
| `spdy_command` | a client over SPDY, and a command of another machine as a client of it sees it |
| `ports` | port forwarding over either |

Agents of nodes answer with these; so does the API server where the agent is on another machine.
"""
