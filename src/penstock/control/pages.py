"""The API's own description as a page: no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from typing import Any

_STYLE = (
    "body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{background:#f2f2f2;padding:.1rem .3rem}td{padding:.2rem .8rem;vertical-align:top}"
)
_ALLOWED = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
PAGE_POLICY = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_ALLOWED}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
"""The one style of the page, and nothing else."""


def api_page(description: Mapping[str, Any]) -> str:
    """A table of all routes and methods, from the OpenAPI description."""
    rows = "".join(
        f"<tr><td><code>{method.upper()} {escape(path)}</code></td>"
        f"<td>{escape(str(told.get('summary', '')))}</td><td>{_parameters(told)}</td></tr>"
        for path, methods in description["paths"].items()
        for method, told in methods.items()
    )
    title = f"{escape(description['info']['title'])} {escape(description['info']['version'])}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        "<p>Every request carries <code>Authorization: Bearer</code> with the system's token. "
        "The machine-readable form is <code>/openapi.json</code>.</p>"
        f"<table>{rows}</table></html>"
    )


def _parameters(told: Mapping[str, Any]) -> str:
    names = [escape(parameter["name"]) for parameter in told.get("parameters", ())]
    if "requestBody" in told:
        names.append("a JSON body")
    return ", ".join(names)
