"""Certificates of a webhook server: from files or made and rotated here, and the CA bundles that announce them."""
