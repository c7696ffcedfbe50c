"""Backups of an installation: one file with all rows, independent of the database, and the files that rows refer to.

`writing` creates it, `container` reads and checks it, `restoring` loads it. `values` and `tables` convert rows, `files`
handles the files outside the database, `journal` cleans up after a restore that was killed.
"""
