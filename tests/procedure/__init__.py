"""The procedure: its rows, its life at the table, its laws."""
