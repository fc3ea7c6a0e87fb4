"""The HTTPS API of a node: logs, exec, attach, port-forward and stats, with delegated authorization."""
