"""The published procedure: rows as text, Markdown and a diagram."""
