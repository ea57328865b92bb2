"""The review over HTTP."""
