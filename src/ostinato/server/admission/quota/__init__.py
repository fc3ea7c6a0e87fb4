"""Admission that bounds amounts: ResourceQuota and LimitRanger."""
