"""Kernels for containment: does one box hold another, and the trees and curves that find it."""
