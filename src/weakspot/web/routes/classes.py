"""Class view: right and wrong samples, phrases and their scores."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["classes"])
