"""X.509 authenticators: client certificates and the request header authenticator of front proxies."""
