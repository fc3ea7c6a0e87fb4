"""Backends: Pods, Services, node agents and webhooks that the server connects to.

| module | contains |
|---|---|
| `addresses` | address guard: allowed addresses, resolved once and dialed as checked |
| `headers` | which headers go on, and which come back |
| `forwarding` | forwarding of requests and upgrades to a backend |
"""
