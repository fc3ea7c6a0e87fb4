"""Runs of hooks: an executable with files for input and output, or a Python function in this process."""
