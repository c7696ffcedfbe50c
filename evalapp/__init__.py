"""The ground of the product; `__version__` is the one place that says which version this is."""

__version__ = "0.2.0.dev0"
