"""Authorization: whether a user may do what a request asks.

| module | is |
|---|---|
| `authorizer` | the chain of modes, asked in order |
| `roles`, `rules` | RBAC: roles, bindings and what their rules allow |
"""
