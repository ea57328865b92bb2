"""Game sheets, tables and jurisdictions."""
