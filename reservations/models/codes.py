"""The codes that customers type: of promotions, of partners."""


def normalize_code(code: str) -> str:
    """As it is kept and looked for: in capitals, without the space around it."""
    return code.strip().upper()
