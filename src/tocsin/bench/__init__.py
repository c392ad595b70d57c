"""Seeded workloads and the experiments that measure engines on them. This room may import all the others."""
