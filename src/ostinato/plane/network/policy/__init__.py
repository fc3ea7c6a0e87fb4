"""Network policies: what Pods with networks of their own may send to and receive from.

| module | contains |
|---|---|
| `peers` | Pods, as policies see them |
| `table` | what each isolated Pod permits, by address: compiled from all policies |
| `ruleset` | the same in rules of nf_tables, on the way of forwarded packets |
| `gate` | the table, for relays that connect on behalf of others |
| `enforcer` | keeps the rules up to date, and holds new Pods back until they apply |

Everything is derived from the current objects and installed at once: there is no state between two changes.
Connections to Services are checked twice: the kernel drops those for which no endpoint is permitted, and the service
proxy chooses among the permitted endpoints only.
"""
