"""The tester's side of the protocol: wire, handshake, session, operators."""
