"""Simulated mechanisms: shoe, shuffler, station."""
