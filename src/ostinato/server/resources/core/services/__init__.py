"""Services and Endpoints: strategies, allocation of cluster IPs and node ports, validation."""
