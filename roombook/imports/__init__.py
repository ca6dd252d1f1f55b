"""Tables in and out: rows of the database as CSV or XLSX, checked as a whole and written at once.

`files` reads and writes the files, `cells` says how a value is written in a cell, `sheet` which
kinds of rows there are. `checking` compares a file with the database, which gives a `plan`;
`writing` writes it, `exporting` takes rows out; `admin` has the back office's pages.
"""
