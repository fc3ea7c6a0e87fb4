"""Authorization: whether a user may do what a request asks.

| module | is |
|---|---|
| `authorizer` | the chain of modes, asked in order |
| `modes`, `configuration` | which modes an operator chose, by options or in a file that is followed |
| `rbac`, `roles`, `rules` | RBAC: roles, bindings and what their rules allow |
| `node`, `node_graph`, `references` | nodes: what their Pods need |
| `webhook`, `conditions` | another server that decides, and for which requests it is asked |
| `fixed` | AlwaysAllow and AlwaysDeny |
"""
