"""Search and counterfactuals: captions, pictures, rates."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["search"])
