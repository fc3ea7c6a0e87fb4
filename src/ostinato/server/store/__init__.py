"""The store: all objects as encoded bytes, with one resourceVersion sequence and the recent history.

`Index` holds current state and history in memory and serves all reads; a `Log` makes writes durable. A write is visible
and acknowledged only when its log has it.
"""
