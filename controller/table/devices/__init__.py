"""Devices of a table: supervisors, outputs, acknowledgement, links."""
