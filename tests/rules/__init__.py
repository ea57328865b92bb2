"""Cards, hands, money, options."""
