"""How the contract's wire looks: formats, envelope, names, errors. It knows no domain."""
