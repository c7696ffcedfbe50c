"""Encoders: where they lie, how they are loaded without network or foreign code, what they make of texts."""
