"""What all stored values share: frozen, strict about names, and errors in plain words."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from holdfast.errors import InvalidInputError


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    def changed(self, **changes: Any) -> Self:
        """A copy with these fields changed, validated like any other."""
        return type(self).model_validate({**dict(self), **changes})


def explain(error: ValidationError, *, most: int = 3) -> str:
    """`tasks.3.id: Field required; …`: where and what, in one line."""
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'value'}: {fault['msg']}" for fault in error.errors()[:most]
    ]
    left = error.error_count() - most
    return "; ".join(faults) + (f"; and {left} more" if left > 0 else "")


def invalid(what: str, error: ValidationError) -> InvalidInputError:
    return InvalidInputError(f"{what}: {explain(error)}")
