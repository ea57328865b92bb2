"""Mutation testing: small faults put into the product, and whether the tests find them."""
