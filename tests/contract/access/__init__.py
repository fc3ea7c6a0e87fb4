"""Access requests: thousands of requests with the answers of kube-apiserver."""
