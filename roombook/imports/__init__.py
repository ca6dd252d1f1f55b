"""Import and export of rows as CSV or XLSX, built on django-import-export.

The library supplies the resources with their fields and widgets, the dry run with its results and
diffs, the instance loader, the formats, the storage of uploads and the pages (with unfold's
templates). Of our own is what it cannot do:

- `files`, `workbooks`: reading within bounds of bytes, rows, memory and time, exactly or
  not at all. `roombook.backoffice.spreadsheets` writes row by row, so that an export of any size
  needs little memory.
- `displayed_values`: a cell of a workbook means what the sheet displays.
- `widgets`: values that are parsed exactly. The library's read 1.5 as 1 and "maybe" as False.
- `checking`: queries per batch instead of per row, and no transaction open while a file is checked.
- `constraints`: check constraints without a query per row.
- `resources`: all rows or none, in one short transaction that locks the rows and refuses if they
  are not as they were previewed; entries of our audit log.
- `results`: a digest of what was previewed, so that nothing else is written; bounded previews.
- `models`: uploads that every worker can read, and only their owner; one check for each user.
- `admin`: rights by center instead of by model; exports that are sent row by row.

Which rows a user may import and export is up to `accounts.resources`.
"""
