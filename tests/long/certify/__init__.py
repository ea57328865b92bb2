"""Long checks of the figures that others have published, run by `make certify`."""
