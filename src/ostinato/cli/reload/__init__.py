"""`ostinato run --reload`: run the program in a process of its own, and restart it when its sources change.

- `sources`: which files are watched, and what has changed.
- `supervisor`: starts, stops and restarts the process. The embedded cluster runs here and stays.
- `program_process`: the process; it ends with the supervisor, however that ends.
"""
