"""Completion scripts, generated from the parser: `words` has what can be completed, a module per shell the script."""
