"""Field paths: path elements and field sets, in the JSON form of `fieldsV1`."""
