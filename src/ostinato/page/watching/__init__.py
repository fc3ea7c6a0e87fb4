"""Watching: the objects of the cluster, through its API as any client.

| module | contents |
|---|---|
| `kinds` | which kinds are watched, and which may not be |
| `cluster` | their informers; records each change |
| `readiness` | whether an object is ready |
| `trees` | owner trees |
"""
