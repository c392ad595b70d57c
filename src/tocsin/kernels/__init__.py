"""Compiled loops: pure functions over named arrays. The only room that imports Numba; it imports nothing of ours."""
