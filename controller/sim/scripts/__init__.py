"""Scripted rounds: file format, player, expected results."""
