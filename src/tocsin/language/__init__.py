"""What a subscription says: text to tree to normal form, and back to text. Imports nothing of ours but `kernels`."""

from tocsin.language.parser import parse
from tocsin.language.printer import to_text

__all__ = ["parse", "to_text"]
