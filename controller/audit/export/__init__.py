"""Sealed cases, row exports, retirement of old days."""
