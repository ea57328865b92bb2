"""What both sides of TableLink share: framing, handshakes, session cipher."""
