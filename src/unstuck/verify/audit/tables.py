"""Find the tables of a text: lists whose parts hold several values each, so that each part is a row."""

import re

from unstuck.verify.audit.flow import is_block
from unstuck.verify.audit.forms import Form
from unstuck.verify.audit.trees import Node

_TABLE = re.compile(
    r"^(?:array|list|tuple|literal_value|array_expression|array_initializer|element_value_array_initializer|initializer_expression|array_creation_expression"
    r"|initializer_list|array_literal|collection_literal|collection_expression|token_tree|set|object|dictionary|map_content|hash|tuple_expression|value_arguments|argument_list|arguments)$"
)
_PLAIN_ARGUMENTS = frozenset({"value_arguments", "argument_list", "arguments", "token_tree"})
_LISTS = re.compile(
    r"^(?:listOf|arrayOf|setOf|mapOf|sequenceOf|asList|of|Values|ValuesIn|Combine|vec|List|Arrays|Stream|Set|table|row|rows|DescribeTable|each|where|data|Combinatorial|arguments|Seq|Array)$"
)
_ROW_MARK = re.compile(
    r"\b(?:InlineData|TestCase|DataRow|case|test_case|Row|Arguments|values|TestWith|Values|example|Params?|Sql|testWith)\b"
)
_LEAST_ROWS = 2


def is_table(form: Form, node: Node) -> bool:
    """Tell whether a node is a list of rows."""
    if not _TABLE.match(node.kind):
        return False
    if len(node.children) < _LEAST_ROWS and not (
        node.children and len(node.children[0].children) > 1 and _in_loop(node)
    ):
        return False
    if node.kind in _PLAIN_ARGUMENTS:
        before = form.tree.tokens[max(0, node.start - 2) : node.start]
        if not any(_LISTS.match(token.text) for token in before):
            return False
    if node.kind in {"object", "dictionary", "map_content", "hash", "tuple_expression"} and not _in_loop(node):
        return all(_values(form, part) > _LEAST_ROWS for part in node.children)
    return sum(_is_row(form, part) for part in node.children) * 2 > len(node.children) or _in_loop(node)


def marked_rows(marks: str) -> list[str]:
    """Give the annotations and attributes that are a row each."""
    found = re.findall(r"\w+ \((?:[^()]|\([^()]*\))*\)", marks) if _ROW_MARK.search(marks) else []
    return [mark for mark in found if _ROW_MARK.match(mark)]


def _is_row(form: Form, node: Node) -> bool:
    values = _values(form, node)
    return values >= _LEAST_ROWS or (values > 0 and len(node.children) > 0 and node.end - node.start > 5)  # noqa: PLR2004


def _values(form: Form, node: Node) -> int:
    return sum(
        token.sort in {"str", "num", "truth"} for token in form.tree.tokens[node.start : min(node.end, node.start + 40)]
    )


def _in_loop(node: Node) -> bool:
    for at, above in enumerate(node.above()):
        if re.match(r"for|foreach|decorator|annotation|attribute", above.kind):
            return True
        if is_block(above.kind) or at > 3:  # noqa: PLR2004
            return False
    return False
