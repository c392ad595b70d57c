"""Kernels of the clusters paper: counting, propagation, and the choice of tables."""
