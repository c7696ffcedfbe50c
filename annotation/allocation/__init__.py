"""Who judges what next, decided with plain values: no rows, no settings, no clock. The services load, ask here,
and save."""
