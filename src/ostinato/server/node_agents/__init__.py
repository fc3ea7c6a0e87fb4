"""Connections to the agents of nodes, in this process and on other machines."""
