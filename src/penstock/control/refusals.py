"""How the API's description says what is answered when something is refused."""

from __future__ import annotations

from typing import Any

from penstock.control.answer_models import Refusal

REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Refusal, "description": "It was not done: what was asked for is wrong"},
    "5XX": {"model": Refusal, "description": "It was not done: something does not work"},
}
REFUSED_TEXTS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": told["description"],
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
    }
    for status, told in REFUSALS.items()
}
"""The same for routes that answer no JSON: their refusals are JSON all the same."""
