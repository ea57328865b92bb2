"""Robots that see what people see: dealer, players."""
