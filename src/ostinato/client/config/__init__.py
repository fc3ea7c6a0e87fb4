"""Configuration: kubeconfig and in-cluster, TLS material, credentials and exec plugins."""
