"""Files of a SQLite store: format, checksums, mark of acknowledged writes, handling of damage.

A store at `PATH` has up to four files:

- `PATH`, the database, and SQLite's side files `PATH-wal` and `PATH-shm`;
- `PATH-mark`, the last acknowledged resourceVersion. It is also the lock of the process that uses the store.
"""
