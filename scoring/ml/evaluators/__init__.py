"""The five learned evaluators and their learned rivals, one package each; they do not know each other.

In each, `entry.py` is its line of the catalogue (no torch); the rest is imported when it is trained or loaded.
"""
