"""Game sheets, table files and jurisdictions: load, validate, explain."""
