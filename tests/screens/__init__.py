"""The pages, tried as a browser would ask for them."""
