"""The fixture `weakspot_check`, for tests of models.

Every run of pytest beside an installed weakspot loads this file: it imports nothing heavy before the fixture is asked for.
"""
