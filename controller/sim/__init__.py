"""The procedure driven without a table: scripts and par sheets."""
