"""Unreferenced evaluators of dialogue replies (MAUDE and its rivals): one frame, one module per network."""
