"""Routing compared with kube-apiserver: paths, methods and users, with the recorded answers."""
