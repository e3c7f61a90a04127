"""Repair: strategies, results, downloads."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["repair"])
