"""ADEM (Lowe et al. 2017): people's ratings regressed on bilinear products of frozen text vectors."""
