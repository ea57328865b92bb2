"""The device side of TableLink without I/O: reference for makers and gateways."""
