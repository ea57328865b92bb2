"""Simulated devices behind real ports, faults, robots, scenarios, conformance and bench."""
