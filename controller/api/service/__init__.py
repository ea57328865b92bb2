"""What the API does, without HTTP."""
