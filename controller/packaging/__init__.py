"""Builds a release: the lock of the dependencies, the wheel, the SBOM, the signed list."""
