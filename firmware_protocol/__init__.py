"""The wire contract, TableLink: messages, framing, link. Imports nothing of ours."""
