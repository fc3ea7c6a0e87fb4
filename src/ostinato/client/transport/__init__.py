"""Transport protocol, and the parts shared by all transports: headers, retries, rate limit, warnings, metrics."""
