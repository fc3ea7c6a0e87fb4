"""Access control: authentication, impersonation and authorization of requests."""
