"""Between sqlglot's tokenizer and its parser: what its parser lets pass and Spark does not is refused here, and words
that Spark takes for names become names.

Spark reserves no word: ``from``, ``case`` and ``like`` are fields wherever an operand is expected and complete. sqlglot
reads them as the beginning of something else. Its parser also skips missing items, a missing AND of BETWEEN and what it
does not understand after a name. A test compares what is accepted with Spark's own parser.
"""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from tocsin.errors import ExpressionLimitError, ExpressionSyntaxError
from tocsin.language.literals import MAX_DEPTH

MAX_CHAIN = 1_000
"""The most operators in a row without AND, OR or a comma between them: ``1 + 1 + 1``, ``a.b.c``, ``x::INT::INT``."""

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET}
_COMPARISONS = {
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.NULLSAFE_EQ,
}
_SIGNS = {TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DPIPE}
_SIGNS |= {TokenType.AMP, TokenType.PIPE, TokenType.CARET}
_WORDS = {TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.BETWEEN, TokenType.ESCAPE, TokenType.DIV}
_CONNECTIVES = {TokenType.AND, TokenType.OR}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_BINARY = _COMPARISONS | _SIGNS | _WORDS
_LINKS = _BINARY | {TokenType.DOT, TokenType.DCOLON, TokenType.IS, TokenType.IN}

_BEFORE_OPERAND = _OPENING | _BINARY | _CONNECTIVES | {TokenType.COMMA, TokenType.TILDE, TokenType.FROM}
_AFTER_OPERAND = _CLOSING | _LINKS | _CONNECTIVES | {TokenType.COMMA, TokenType.NOT}
_AFTER_IS = {TokenType.NOT, TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.DISTINCT}
_NO_NAMES = {TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.VAR, TokenType.IDENTIFIER}
_LITERALS = {TokenType.STRING, TokenType.NUMBER}
_NO_NAMES |= _LITERALS

_TIMES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"})
"""The types that may stand before a string."""

_CLAUSES = frozenset({"SELECT", "CASE", "WHEN", "THEN", "ELSE", "INTERVAL", "SYMMETRIC"})
"""The words before a number that are told of as what they begin, not as a number in the wrong place."""


class _Level:
    """What is open at one level of parentheses: where it began, prefixes whose operand has not come, BETWEENs whose AND
    has not, operators since the last AND, OR or comma."""

    __slots__ = ("begun", "betweens", "chain", "prefixes")

    def __init__(self, begun: int) -> None:
        self.begun = begun
        self.prefixes = self.betweens = self.chain = 0


def checked_tokens(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens of a text with names in place of words that are names; ExpressionError at the place of what is
    refused."""
    return _Pass(tokens, text).checked()


class _Pass:
    def __init__(self, tokens: list[Token], text: str) -> None:
        self._tokens, self._text = tokens, text
        self._levels = [_Level(0)]
        self._depth = 0
        self._expected = True  # an operand is, as at the beginning

    def checked(self) -> list[Token]:
        found: list[Token] = []
        before: Token | None = None
        for at, token in enumerate(self._tokens):
            after = self._tokens[at + 1] if at + 1 < len(self._tokens) else None
            behind_point = before is not None and before.token_type is TokenType.DOT
            if (behind_point and _is_word(token)) or (self._expected and _is_name(token, after)):
                token = _named(token)
            reason = self._fault(token, before, after)
            if reason:
                raise ExpressionSyntaxError(reason, self._text, token.start)
            self._step(token)
            found.append(token)
            before = token
        level = self._levels[-1]
        if len(self._levels) > 1:
            raise ExpressionSyntaxError("this parenthesis is never closed", self._text, level.begun)
        if level.betweens:
            raise ExpressionSyntaxError(_NO_AND, self._text, len(self._text.rstrip()))
        return found

    def _fault(self, token: Token, before: Token | None, after: Token | None) -> str:
        """Return why no expression of Spark's has a token where it stands; empty if it may have."""
        kind, following = token.token_type, after.token_type if after else None
        if kind in _CLOSING or (kind in _CONNECTIVES and not self._expected):
            if kind in _CLOSING and len(self._levels) == 1:
                return "this parenthesis closes nothing"
            return _NO_AND if self._levels[-1].betweens and kind is not TokenType.AND else ""
        if kind in _SINGLY:
            return _SINGLY[kind]
        if kind is TokenType.COMMA:
            missing = before is None or before.token_type in (TokenType.L_PAREN, TokenType.COMMA)
            return "a value is missing beside this comma" if missing or following in _NOTHING else ""
        if kind in _COMPARISONS or kind in _SIGNS or kind in _CONNECTIVES:
            is_sign = kind in _SIGNS and kind is not TokenType.STAR
            return (
                "something is missing after this"
                if following in _NOTHING and kind is not TokenType.STAR
                else ("NOT cannot stand after a sign" if is_sign and following is TokenType.NOT else "")
            )
        if kind is TokenType.VAR and not _is_word(token):
            return "a name without backquotes has letters, digits and underscores only"
        if kind is TokenType.DOT:
            if before is not None and before.token_type is TokenType.NUMBER:
                return "a number runs into a name here"
            return "" if after is not None and _is_word(after) else _NO_NAME
        if kind is TokenType.IS and not self._expected:
            return "" if following in _AFTER_IS else "IS is followed by NULL, TRUE or FALSE"
        return "" if self._expected else self._misplaced(token, before, following)

    def _misplaced(self, token: Token, before: Token | None, following: TokenType | None) -> str:
        """Return what is wrong with a token after a complete operand, or a word that is none."""
        kind = token.token_type
        if kind is TokenType.NUMBER:
            return "" if before is not None and before.text.upper() in _CLAUSES else _HERE
        if kind is TokenType.STRING and before is not None and before.token_type is not TokenType.STRING:
            return "" if before.text.upper() in _TIMES else _HERE
        if kind is TokenType.NOT and (token.text == "!" or following is TokenType.IS):
            return _HERE
        if kind is TokenType.NOT and following is TokenType.NULL and before and before.token_type is not TokenType.IS:
            return "write IS NULL or IS NOT NULL"
        if kind in (TokenType.ISNULL, TokenType.NOTNULL):
            return "write IS NULL or IS NOT NULL"
        return ""

    def _step(self, token: Token) -> None:
        """Count what is open after a token."""
        kind, level = token.token_type, self._levels[-1]
        if kind in _OPENING:
            self._depth += 1
            self._levels.append(_Level(token.start))
        elif kind in _CLOSING:
            self._levels.pop()
            self._depth -= 1 + level.prefixes
            self._end_operand(self._levels[-1])
        elif self._expected and kind in _PREFIXES:
            level.prefixes += 1
            self._depth += 1
        elif kind in _CONNECTIVES or kind is TokenType.COMMA:
            self._end_operand(level)
            level.chain = 0
            level.betweens -= kind is TokenType.AND and level.betweens > 0
        elif kind in _LINKS:
            level.chain += 1
            level.betweens += kind is TokenType.BETWEEN
        if self._depth > MAX_DEPTH or level.chain > MAX_CHAIN:
            raise ExpressionLimitError(_TOO_DEEP if self._depth > MAX_DEPTH else _TOO_LONG, self._text, token.start)
        self._expected = kind in _BEFORE_OPERAND or (kind is TokenType.NOT and self._expected)

    def _end_operand(self, level: _Level) -> None:
        self._depth -= level.prefixes
        level.prefixes = 0


_NOTHING = {None, TokenType.COMMA, *_CLOSING}
_HERE = "this cannot stand here"
_NO_NAME = "a name is expected after this point; one that begins with a digit stands in backquotes"
_NO_AND = "BETWEEN takes two values, with AND between them"
_TOO_DEEP = f"the expression nests too deeply: the limit is {MAX_DEPTH} parentheses, NOTs and signs inside each other"
_TOO_LONG = f"there are too many operators in a row: the limit is {MAX_CHAIN:,} between two ANDs, ORs or commas"
_SINGLY = {
    TokenType.SEMICOLON: "a subscription is one expression; leave this semicolon out",
    TokenType.PLACEHOLDER: "nothing fills in this ?; write the value itself",
    TokenType.L_BRACE: _HERE,
    TokenType.R_BRACE: _HERE,
    TokenType.NATIONAL_STRING: "a string has no N before it",
}


def _is_word(token: Token) -> bool:
    """Return whether a token may be a name: letters, digits and underscores, or anything in backquotes."""
    is_quoted, is_literal = token.token_type is TokenType.IDENTIFIER, token.token_type in _LITERALS
    return is_quoted or (not is_literal and token.text.replace("_", "a").isalnum())


def _is_name(token: Token, after: Token | None) -> bool:
    """Return whether a token where an operand is expected is a word that ends there, and so a name."""
    if token.token_type in _NO_NAMES or not _is_word(token):
        return False
    following = after.token_type if after else None
    if token.token_type is TokenType.NOT:
        return following in _COMPARISONS
    return following is None or following in _AFTER_OPERAND


def _named(token: Token) -> Token:
    return Token(TokenType.IDENTIFIER, token.text, token.line, token.col, token.start, token.end, token.comments)
