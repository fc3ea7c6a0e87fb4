"""Authorization: whether a user may perform a request.

| module | contains |
|---|---|
| `authorizer` | union authorizer: the chain of modes |
| `modes`, `configuration` | --authorization-mode and --authorization-config, with reload |
| `rbac`, `roles`, `rules` | RBAC authorizer: roles, bindings, policy rules |
| `node`, `node_graph`, `references` | Node authorizer: objects that a node's Pods need |
| `webhook`, `conditions` | webhook authorizer, match conditions |
| `fixed` | AlwaysAllow and AlwaysDeny |
"""
