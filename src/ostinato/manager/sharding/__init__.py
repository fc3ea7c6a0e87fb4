"""Sharding: replicas share the objects of their controllers.

- The keys are divided into a fixed number of shards by a hash. Each shard has a Lease; the replica that holds it
  reconciles the objects of the shard. Leases are acquired, renewed and fenced as in leader election.
- Each replica also has a Lease of its own, by which the others count the replicas. A replica acquires free shards up to
  its share, and hands over those above it: it finishes their reconciles, then releases the Lease.

| module | |
|---|---|
| `settings` | options, and the shard of a key |
| `members` | the replicas |
| `election` | acquires, renews and releases shards, in a thread of its own |
| `shards` | the shards of this replica: runs and cancels reconciles, on the manager's loop |
"""
