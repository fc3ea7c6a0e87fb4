"""Release records: what is deployed, in the form of Helm 3, so that `helm list`, `status` and `history` show it."""
