"""Authentication: who sends a request. A module for each way to tell; `authenticator` tries them in order."""
