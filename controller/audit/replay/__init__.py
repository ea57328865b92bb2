"""Game events in the record: encode, decode, replay through step()."""
