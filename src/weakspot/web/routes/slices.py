"""Slices: the table, one slice, and what people do with it."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["slices"])
