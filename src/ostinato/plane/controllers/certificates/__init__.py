"""Controllers of CertificateSigningRequests and of the published root CA certificate."""
