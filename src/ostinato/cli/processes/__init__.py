"""`ostinato up` in several processes.

| module | contents |
|---|---|
| `division` | which parts run in which process |
| `cores` | how many cores this process may use |
| `supervisor` | the parent: starts and stops the others, prints the ready line |
| `supervised` | one of the others, as the parent sees it: started, restarted when it ends, stopped |
| `log_relay` | whole lines of their logs |
| `workers` | the parent of `ostinato apiserver --workers N` |
| `child` | the main program of the others |
| `attachment` | what the parent and the others tell each other |
"""
