"""Import and export of tables as CSV or XLSX, by django-import-export.

The library imports a file in a transaction, row by row, and rolls it back for a preview or if a row
is wrong; each row is validated and saved as a form does, so that the signals of its model write the
audit log. Its pages, with unfold's templates, are those of the back office. Its hooks are used for
what a booking service needs:

- `files`, `workbooks`, `displayed_values`: a file is read exactly or not at all, workbooks in a
  process of their own. `roombook.backoffice.spreadsheets` writes both, and guards formulas.
- `resources`: rows are found by their names however these are typed, texts are compared with what
  will be stored, and a confirmation writes what its preview showed.
- `models`: uploads that every machine can read, and only their owner.
- `admin`: rights by center instead of by model. Exports are those of all lists
  (`roombook.backoffice.list_export`), with its search and filters.

Which rows a user may import and export is up to `accounts.resources`.
"""
