"""Kernels for verification programs and for the order in which operators are evaluated."""
