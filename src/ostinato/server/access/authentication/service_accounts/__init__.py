"""Service account token authenticator: signing, bound objects, legacy tokens."""
