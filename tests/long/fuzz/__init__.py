"""Chance against the decoders and the link: fault campaigns and fuzz targets."""
