"""Overview: how the classifier does, the worst slices, runs."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["overview"])
