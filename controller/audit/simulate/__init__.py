"""Records of scripted and simulated rounds."""
