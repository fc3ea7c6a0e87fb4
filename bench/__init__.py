"""Benchmarks: each compares with a peer in the same run and prints ratios.

`make bench` runs those that need nothing but Python; `python -m bench NAME ...` runs some.
"""
