"""Notice: this file's content was lost and has to be written again by its author (the assemble/outcomes engineer).

The media/ingest-sources engineer overwrote it by mistake at 23:59:49 with a module of the same name, which now lives in
`table_survey.py`. The original was untracked and could not be recovered, and nothing was put here in its place on purpose.
"""

raise ImportError("weakspot.ingest.survey was overwritten by mistake; its author must write it again (see this file's docstring)")
