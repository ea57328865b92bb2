"""Whole tables on a machine that is too busy, or whose processes are stopped."""
