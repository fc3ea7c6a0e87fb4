"""Store: the objects of one collection as bytes, with the metadata and index values of each."""
