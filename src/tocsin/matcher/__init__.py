"""The library object. Everything before it is a room it is made of; everything after it uses it."""

from tocsin.matcher.admission import Problem
from tocsin.matcher.matcher import Matcher

__all__ = ["Matcher", "Problem"]
