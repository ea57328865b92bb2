"""The dealer's console over HTTP."""
