"""Tables in and out: rows of the database as CSV or XLSX, checked as a whole and written at once.

`files` reads and writes the files, `cells` says how a value is written in a cell, `sheet` compares
a file with the database and writes the difference, `admin` has the back office's pages.
"""
