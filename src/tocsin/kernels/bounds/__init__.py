"""Kernels of the `bounds` engine: sorted bounds a dimension, and moves along them."""
