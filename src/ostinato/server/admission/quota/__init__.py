"""ResourceQuota and LimitRanger."""
