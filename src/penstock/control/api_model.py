"""What everything that the REST API takes and answers has in common."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_jsonable_python


class ApiModel(BaseModel):
    """Something that is sent: never changed, and no matter if there is more than is known here."""

    model_config = ConfigDict(
        frozen=True, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


def plain(answer: object) -> Any:
    """An answer, or a list of them, as JSON has it: the form that scripts see.

    >>> from penstock.control.answer_models import DroppedAnswer
    >>> plain([DroppedAnswer(name="ami")])
    [{'name': 'ami'}]
    """
    if isinstance(answer, list):
        return [plain(item) for item in answer]
    if isinstance(answer, BaseModel):
        return answer.model_dump(mode="json", exclude_unset=True)
    return to_jsonable_python(answer)
