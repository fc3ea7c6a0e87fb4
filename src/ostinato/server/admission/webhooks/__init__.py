"""Admission webhooks: MutatingAdmissionWebhook and ValidatingAdmissionWebhook."""
