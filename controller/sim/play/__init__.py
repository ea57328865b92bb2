"""Rounds without a table: a dealer by the book, players by a strategy."""
