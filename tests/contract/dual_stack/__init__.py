"""Services of clusters with two IP families: what a kube-apiserver v1.36.4 answers, and what this one does."""
