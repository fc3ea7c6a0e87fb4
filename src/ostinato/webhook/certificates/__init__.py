"""Certificates of a webhook server: from files or self-signed, and the injection of their CA bundle."""
