"""Health: whether the server has opened its project; open to anyone."""

from fastapi import APIRouter

from weakspot.web.readiness import HealthView
from weakspot.web.server_parts import Parts

router = APIRouter(prefix="/api", tags=["health"])


@router.get("/health")
async def health(parts: Parts) -> HealthView:
    """Say how the server is; answers also while everything else waits."""
    return parts.readiness.health
