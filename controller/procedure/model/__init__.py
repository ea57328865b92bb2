"""Values of the procedure: state, events, effects, game, rows."""
