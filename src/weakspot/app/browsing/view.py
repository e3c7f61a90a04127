"""What all views have in common."""

from pydantic import BaseModel, ConfigDict


class View(BaseModel):
    """Base of everything that a page is sent: frozen, closed, and what is not a finite number is null."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")
