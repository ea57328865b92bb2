"""TableLink, the protocol between host and devices. Imports no other package of the project."""
