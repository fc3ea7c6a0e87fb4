"""Node registration: the Node object, its status and Lease, and the heartbeat that keeps both current."""
