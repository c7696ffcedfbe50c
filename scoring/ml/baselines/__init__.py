"""Measures that need no training: sentinels, overlap of words and characters, encoders used as they are."""
