"""Random tests of the decoders and the link: fault campaigns and fuzz targets."""
