"""Live: what is going on now.

| module | contents |
|---|---|
| `graph` | who watches what, and who writes what |
| `alarms` | what is wrong |
| `stream` | batches of facts to every open page |
"""
