"""Backends: Pods, Services, node agents and webhooks that the server connects to.

| module | is |
|---|---|
| `addresses` | which addresses may be asked; names are resolved once, and what was checked is what is dialed |
| `headers` | which headers go on, and which come back |
| `forwarding` | a client's request goes on to a backend, upgrades included |
"""
