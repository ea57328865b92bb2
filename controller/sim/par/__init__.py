"""Par sheets: many rounds, exact figures, reports."""
