"""Modules of Python operators: where the file of one lies, without importing it."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path


def module_beside(module: str, folder: Path) -> Path | None:
    """The file of a module in ``folder``; None if there is none."""
    place = folder.joinpath(*module.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


def fault_of(function: str, folder: Path | None) -> str:
    """What keeps ``module:function`` from being loaded, without running any of it; or nothing."""
    module, _, name = function.partition(":")
    path = None if folder is None else module_beside(module, folder)
    if path is None:
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            where = "" if folder is None else f"in {folder} nor "
            return f"no module {module} {where}among those installed"
        path = Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    if path is None:
        return ""
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        return f"{path}, line {error.lineno}: {error.msg}"
    return "" if name in _names(tree) else f"no function {name} in {path}"


def _names(tree: ast.Module) -> set[str]:
    """Everything that a module may give a name to, wherever that happens."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add(other or name)
    return names
