"""Tablelink."""
