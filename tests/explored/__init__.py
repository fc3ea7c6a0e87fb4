"""Fault exploration of what Ostinato ships: the control plane, the examples, the templates of `ostinato init`."""
