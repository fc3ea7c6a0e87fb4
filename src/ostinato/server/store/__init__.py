"""The store: every object as encoded bytes, one growing version for all of them, and the recent past.

`Index` holds the present and the recent history in memory and serves every read; a `Log` behind it makes writes
durable. A write is visible, and acknowledged, only once its log has it.
"""
