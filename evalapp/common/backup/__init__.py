"""Copies of a whole installation: one file with every row, free of any one database, and the files that rows speak of.

`writing` makes it, `reading` checks it, `restoring` puts it into an empty installation. `values` and `tables` know how
rows look outside a database, `files` what lies beside the database, `journal` what is left of a restore that was
killed."""
