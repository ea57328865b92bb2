"""The record: every card, wager, decision and payment, durable, chained, signed and sealed."""
