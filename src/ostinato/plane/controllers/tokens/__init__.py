"""Controllers of tokens that are kept in Secrets: bootstrap tokens, and long-lived ones of service accounts."""
