"""Routing beside kube-apiserver: paths, methods and users, and what the real server answered."""
