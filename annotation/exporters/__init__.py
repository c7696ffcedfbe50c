"""Writing a project out: rows in canonical order (`canonical`), and the file formats (`formats`)."""
