"""Map: samples in two dimensions, and what a lasso holds."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["map"])
