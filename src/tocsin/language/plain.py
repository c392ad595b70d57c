"""The plainest templates, one field compared with one literal, read without sqlglot: a process whose subscriptions are
made of these never imports it.

Whatever is not certainly such a comparison is left to sqlglot; a test holds both ways against each other, and the words
below against those of the sqlglot that is installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tocsin.kernels.language import literals as classes
from tocsin.language.tree import Comparison, Field, Operand, Operator

_OPERATORS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_LITERALS = "".join(map(chr, (classes.INTEGER, classes.DECIMAL, classes.DOUBLE, classes.PLAIN)))
_PLAIN = re.compile(rf"[ \n\t]*([A-Za-z_][A-Za-z0-9_]*)[ \n\t]*([=<>!]+)[ \n\t]*[{_LITERALS}][ \n\t]*")

_LISTED = """
ADD ALL ALTER ANALYZE AND ANTI ANY APPLY ARCHIVE ARCHIVES ARRAY AS ASC ASOF AUTOINCREMENT AUTO_INCREMENT BEGIN
BETWEEN BIGDECIMAL BIGINT BIGNUM BIGNUMERIC BINARY BIT BLOB BOOL BOOLEAN BPCHAR BY BYTE BYTEA CACHE CALL CASE CHAR
CHARACTER CLOB CLUSTER COLLATE COLUMN COMMENT COMMIT CONNECT CONNECT_BY_ROOT CONSTRAINT COPY CREATE CROSS CUBE
CURRENT_CATALOG CURRENT_DATE CURRENT_DATETIME CURRENT_ROLE CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP
CURRENT_USER DATABASE DATE DATEMULTIRANGE DATERANGE DATETIME DEC DECFLOAT DECIMAL DECIMAL128 DECIMAL256 DECIMAL32
DECIMAL64 DECLARE DEFAULT DEFINED DELETE DESC DESCRIBE DISTINCT DISTRIBUTE DIV DOUBLE DROP ELSE END ENUM ESCAPE
EXCEPT EXECUTE EXISTS EXPLAIN FALSE FETCH FILE FILES FILTER FIRST FIXED FLOAT FLOAT4 FLOAT8 FOR FOREIGN FORMAT FROM
FULL FUNCTION GEOGRAPHY GEOMETRY GLOB GRANT GROUP GROUPING HAVING HUGEINT IF ILIKE IN INDEX INET INNER INSERT INT
INT1 INT128 INT16 INT2 INT256 INT32 INT4 INT4MULTIRANGE INT4RANGE INT64 INT8 INT8MULTIRANGE INT8RANGE INTEGER
INTERSECT INTERVAL INTO IS ISNULL JAR JARS JOIN JSON JSONB KEEP KEY KILL LATERAL LEFT LIKE LIMIT LIST LOAD LOCALTIME
LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LONGVARCHAR MAP MEDIUMBLOB MEDIUMINT MEDIUMTEXT MERGE MINUS MSCK
NAMESPACE NATURAL NCHAR NEXT NOT NOTNULL NULL NULLABLE NUMBER NUMERIC NUMMULTIRANGE NUMRANGE NVARCHAR NVARCHAR2
OBJECT OFFSET ON OPERATOR OPTIMIZE OR ORDER ORDINALITY OUT OUTER OVER OVERLAPS OVERWRITE PARTITION PARTITIONED
PARTITIONED_BY PERCENT PIVOT PRAGMA PRECISION PREPARE PRIMARY PROCEDURE QUALIFY RANGE REAL RECURSIVE REF REFERENCES
REFRESH REGEXP RENAME REPAIR REPLACE RETURNING REVOKE RIGHT RLIKE ROLLBACK ROLLUP ROW ROWS SCHEMA SECURITY SELECT
SEMI SEQUENCE SERDEPROPERTIES SESSION SESSION_USER SET SETS SETTINGS SHORT SHOW SIMILAR SMALLINT SOME SORT SQL STR
STRAIGHT_JOIN STRING STRUCT TABLE TABLESAMPLE TEMP TEMPORARY TEXT THEN TIME TIMESTAMP TIMESTAMPLTZ TIMESTAMPNTZ
TIMESTAMPTZ TIMESTAMP_LTZ TIMESTAMP_NTZ TIMETZ TIME_NS TINYBLOB TINYINT TINYTEXT TO TRANSFORM TRIGGER TRUE TRUNCATE
TSMULTIRANGE TSRANGE TSTZMULTIRANGE TSTZRANGE UHUGEINT UINT UINT128 UINT256 UNCACHE UNION UNIQUE UNKNOWN UNNEST
UNPIVOT UPDATE USE USER USING UUID VACUUM VALUES VARBINARY VARCHAR VARCHAR2 VARIANT VARYING VECTOR VIEW VOLATILE
WHEN WHERE WHILE WINDOW WITH XOR
"""

WORDS = frozenset(_LISTED.split())
"""The words that mean something to sqlglot, as the name of a field or before one."""


def plain_comparison(
    template: str, operand: Callable[[int, int], Operand], original: Callable[[int], int]
) -> Comparison | None:
    """Return the tree of a template, if it is one field compared with one literal; ``operand`` and ``original`` are as
    for a translator.

    >>> from tocsin.language.tree import Slot
    >>> found = plain_comparison("price <= \x01", lambda number, place: Slot(number, "integer", place=place), int)
    >>> found.operator, found.field.path, found.constant.place
    ('<=', ('price',), 9)
    >>> plain_comparison("date <= \x06", lambda number, place: Slot(number, "string"), int) is None
    True
    """
    found = _PLAIN.fullmatch(template)
    if found is None or found[2] not in _OPERATORS or found[1].upper() in WORDS:
        return None
    literal = len(template.rstrip(" \n\t")) - 1
    return Comparison(
        _OPERATORS[found[2]], Field((found[1],), place=original(found.start(1))), operand(0, original(literal))
    )
