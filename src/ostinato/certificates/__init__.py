"""Serving certificates: from files or self-signed, stored in memory or a Secret, replaced without a restart."""
