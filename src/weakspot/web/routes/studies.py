"""Studies: invitations, phrases, time, export."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["studies"])
