"""A whole run: device, keys, items, report."""
