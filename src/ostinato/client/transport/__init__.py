"""The transport protocol, and what every transport shares: headers, retries, rate limit, warnings, metrics."""
