"""Transports: how a front end calls the code of its users: a process, an HTTP request."""
