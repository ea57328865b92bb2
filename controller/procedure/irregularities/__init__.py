"""The rows of irregularities: what stops the table, rulings, how a hold is released."""
