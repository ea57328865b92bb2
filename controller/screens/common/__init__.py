"""What every page has in common: who may come in, how it is sent, how it looks, its words."""
