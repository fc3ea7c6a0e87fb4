"""Controllers of service accounts and their token Secrets."""
