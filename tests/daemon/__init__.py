"""The daemon, from outside and in its parts."""
