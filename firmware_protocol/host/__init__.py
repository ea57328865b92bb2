"""The host side of TableLink, without I/O."""
