"""The control API over HTTP."""
