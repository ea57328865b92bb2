"""Pure rules: cards, hands, money, the sheet's options, what a hand may do, what it is paid."""
