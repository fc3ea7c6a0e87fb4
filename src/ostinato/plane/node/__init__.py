"""Nodes: agents that run the Pods that are bound to them, and say how these fare.

An agent is a controller like the others: it watches Pods, compares what runs with what is wanted, and takes a step.
What runs containers is a runtime, of which there are several (`runtimes`).
"""
