"""What all stored values share: frozen, strict about names, and errors in plain words."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from holdfast.base.errors import InvalidInputError
from holdfast.base.redact import redact


class Value(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_inf_nan="constants",
        json_schema_serialization_defaults_required=True,  # what we write has every field
    )

    def changed(self, **changes: Any) -> Self:
        """A copy with these fields changed, validated like any other."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}  # and nothing cached
        return type(self).model_validate({**fields, **changes})

    def without_secrets(self) -> Self:
        """Itself, or where it holds a secret a copy with `[redacted:…]` in its place."""
        clean, found = redact(self.model_dump_json())
        return type(self).model_validate_json(clean) if found else self


def explain(error: ValidationError, *, most: int = 3) -> str:
    """`tasks.3.id: Field required; …`: where and what, in one line."""
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'value'}: {fault['msg']}" for fault in error.errors()[:most]
    ]
    left = error.error_count() - most
    return "; ".join(faults) + (f"; and {left} more" if left > 0 else "")


def invalid(what: str, error: ValidationError) -> InvalidInputError:
    return InvalidInputError(f"{what}: {explain(error)}")
