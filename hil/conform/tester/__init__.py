"""The tester's side: wire, handshake, session, operators."""
