"""Attributes: values by outcome, editing, combinations."""

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["attributes"])
