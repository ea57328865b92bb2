"""Verify_record."""
