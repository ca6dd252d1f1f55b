"""The wire format of the contract: formats, envelope, names, errors. Independent of the domain."""
