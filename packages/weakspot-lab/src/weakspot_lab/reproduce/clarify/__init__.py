"""Clarify, interactive model correction with natural language, run again."""
