"""Game sheets, tables, jurisdictions and deployment files, found when installed."""
