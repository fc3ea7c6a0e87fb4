"""History: what happened in the last minutes, bounded in bytes.

| module | contents |
|---|---|
| `change` | a change of an object as it was watched, decoded when it is shown |
| `changes` | the ring of changes, and which run made each of them |
| `runs` | the ring of runs of controllers, their statistics, the decisions of the scheduler |
| `diff` | the fields that differ between two states |
| `authors` | who wrote a change, by managedFields |
| `chain` | the chain of causes |
"""
