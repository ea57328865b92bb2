"""Prompts, terms and refusals in the house's language."""
