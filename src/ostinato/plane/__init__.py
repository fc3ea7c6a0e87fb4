"""The control plane: controllers, a scheduler and node agents around an API server, without a conductor.

Each of them is a controller on `ostinato.controllers`, as any operator: it watches, compares, and takes a step. They
know the API server and not each other.
"""
