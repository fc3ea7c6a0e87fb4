"""The networking.k8s.io group: NetworkPolicies, Ingresses, IPAddresses and ServiceCIDRs."""
