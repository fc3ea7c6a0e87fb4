"""What the server does beside requests: bootstrap objects, custom resources, expiry, FlowSchema conditions."""
