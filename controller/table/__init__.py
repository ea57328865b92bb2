"""The running table: devices, people and the record around the procedure."""
