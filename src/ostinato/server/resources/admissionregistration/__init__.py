"""The admissionregistration.k8s.io group: webhook configurations and admission policies."""
