"""Pictures by number: thumbnails and whole pictures."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["pictures"])
