"""Reading and writing objects: partial Pod types, shared indexes, decoded states, status writes."""
