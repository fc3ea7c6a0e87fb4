"""Benchmarks: each compares with a peer in the same run and prints ratios.

`make bench` runs those that need only Python; `python -m bench NAME ...` runs the named ones.
"""
