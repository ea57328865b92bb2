"""The control API: screens, people, acts, the stream, the document, and the client."""
