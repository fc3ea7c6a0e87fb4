"""The files of a SQLite store: format, checksums, the mark of what was acknowledged, and what to do about damage.

A store at `PATH` is up to four files:

- `PATH`, the database, and `PATH-wal` and `PATH-shm`, which SQLite keeps beside it;
- `PATH-mark`, the last resourceVersion that was acknowledged. It also is the lock of the process that uses the store.
"""
