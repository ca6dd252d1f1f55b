"""Made-up data by the million, to measure with: `generate_data` makes it; nothing else reads it.

Unlike the demo's it passes by the domain's functions, for speed; it is held to the same books
(verify_integrity) and to the same prices (reservations.pricing.quote).
"""
