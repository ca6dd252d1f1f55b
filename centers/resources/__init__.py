"""What of the centers can be imported and exported, a file a table: columns, how a row is found.

`common` has what the tables share, the rest is called as its table is.
"""
