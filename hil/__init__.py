"""Simulated devices behind real ports, faults, robots, whole tables, conformance and bench."""
