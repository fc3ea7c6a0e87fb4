"""Reflector: lists and watches one collection, through a FIFO into a store."""
