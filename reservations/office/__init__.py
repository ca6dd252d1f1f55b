"""The pages of the back office that are no list of rows: the day, the week, the figures."""
