"""Shared by all pages: access, sessions, headers, templates, texts, the drawing of the felt."""
