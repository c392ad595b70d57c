"""Kernels of the `bitmap` engine: bit arrays on tree nodes and grids."""
