"""The live page: what happens in a control plane or an operator, and why.

| package | contents |
|---|---|
| `facts`, `masking` | what is shown, and what never is |
| `reporting` | from the controllers of each process to the page |
| `watching` | the objects of the cluster, through its API |
| `history` | the last minutes, bounded; the chain of causes |
| `live` | the graph, alarms, and the stream to open pages |
| `answers` | one object, trees, the past, Pods, nodes |
| `serving` | HTTP with its security, and the Unix socket |

Its design and protocol: docs/dev/page.md.
"""
