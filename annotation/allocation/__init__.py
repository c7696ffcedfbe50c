"""Assignment of units to annotators, with plain values: no rows, no settings, no clock. The services load, ask here,
and save."""
