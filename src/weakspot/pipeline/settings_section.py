"""What all sections of the settings share."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of all sections: frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")
