"""The published procedure: rows as text, Markdown and a diagram."""

from __future__ import annotations

from controller.publish.terms import EVENTS, event_words

__all__ = [
    "EVENTS",
    "event_words",
]
