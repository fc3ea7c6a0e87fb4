"""The apiregistration.k8s.io group: APIServices."""
