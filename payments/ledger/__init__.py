"""The double-entry ledger: what every event has added to which accounts (docs/ledger.md).

`posting.post` is the only function that writes to it. It compares what the accounts of a
reservation hold with what they must hold, and writes the difference. So a repeated event posts
nothing, and no event has rules of its own: `balances.calculate_balances` has all of them.
"""
