"""Arguments of the commands: a module per command, and `server/` for the API server's options.

- `add_to(commands)` declares a command; it imports nothing that the command needs to run.
- `parsed.values(options)` returns the parsed arguments for a command's options class.
"""
