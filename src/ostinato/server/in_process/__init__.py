"""The in-process transport: requests and upgraded connections without HTTP."""
