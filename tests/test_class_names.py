"""A class name has one meaning in the whole package."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import penstock

PACKAGE = Path(penstock.__file__).parent


def _classes(text: str) -> Iterator[ast.ClassDef]:
    for node in ast.walk(ast.parse(text)):
        # Py4J looks for a nested class of this name in everything that implements a Java interface.
        if isinstance(node, ast.ClassDef) and node.name != "Java":
            yield node


def _several(files: Mapping[str, str]) -> dict[str, list[str]]:
    """The names that are given to several classes, with the places where they are."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, text in files.items():
        for found in _classes(text):
            places[found.name].append(f"{path}:{found.lineno}")
    return {name: found for name, found in places.items() if len(found) > 1}


def test_each_class_has_a_name_of_its_own() -> None:
    files = {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
        for path in PACKAGE.rglob("*.py")
    }
    assert len(files) > 100
    assert _several(files) == {}


def test_a_second_class_of_the_same_name_is_found() -> None:
    files = {"a.py": "class Row: ...", "b.py": "\nif True:\n    class Row: ...\nclass Column: ..."}
    assert _several(files) == {"Row": ["a.py:1", "b.py:3"]}
