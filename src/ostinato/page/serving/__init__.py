"""Serving: the page over HTTP, and its Unix socket for commands and reports.

| module | contents |
|---|---|
| `access` | who may ask: token, cookie, Host and Origin |
| `assets` | the files of the front end |
| `routes` | which path is answered by what |
| `listening` | the two servers |
| `shell` | a shell in a container, over WebSocket |
"""
