"""Work under way: start, watch, cancel, resume."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["jobs"])
