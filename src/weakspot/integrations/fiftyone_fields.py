"""How FiftyOne writes fields, ids, embeddings and saved views into the files of a data set."""

import base64
import hashlib
import json
import re
import zlib
from io import BytesIO

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray

_FIELDS = "fiftyone.core.fields."
_LABELS = "fiftyone.core.labels."
# Fields that every sample has, or that weakspot writes itself.
RESERVED = frozenset(
    {
        "id",
        "filepath",
        "tags",
        "metadata",
        "created_at",
        "last_modified_at",
        "ground_truth",
        "predictions",
        "embedding",
        "sample_id",
    }
)
Json = dict[str, object]


def object_id(*parts: str) -> Json:
    """Return an id of the kind that FiftyOne uses; the same parts give the same id."""
    return {"$oid": hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]}


def random_number(name: str) -> float:
    """Return a number from 0 to 1 that only the name decides; FiftyOne shuffles by such numbers."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:13], 16) / 16**13


def packed_embedding(embedding: AnyArray) -> Json:
    """Return an embedding as FiftyOne keeps it: a NumPy file, compressed."""
    stream = BytesIO()
    np.save(stream, np.ascontiguousarray(embedding), allow_pickle=False)
    return {
        "$binary": {
            "base64": base64.b64encode(zlib.compress(stream.getvalue())).decode(),
            "subType": "00",
        }
    }


def field(name: str, kind: str, **more: object) -> Json:
    plain: Json = {
        "name": name,
        "ftype": _FIELDS + kind,
        "embedded_doc_type": None,
        "subfield": None,
        "fields": [],
        "db_field": "_id" if name == "id" else name,
        "description": None,
        "info": None,
        "read_only": False,
        "created_at": None,
    }
    return {**plain, **more}


def label_field(name: str, *, is_many: bool) -> Json:
    """Return the description of a field with one class, or with several."""
    parts = [
        field("id", "ObjectIdField"),
        field("tags", "ListField", subfield=f"{_FIELDS}StringField"),
        field("label", "StringField"),
        field("confidence", "FloatField"),
        field("logits", "VectorField"),
    ]
    if not is_many:
        return field(
            name,
            "EmbeddedDocumentField",
            embedded_doc_type=f"{_LABELS}Classification",
            fields=parts,
        )
    inner = field(
        "classifications",
        "ListField",
        subfield=f"{_FIELDS}EmbeddedDocumentField",
        embedded_doc_type=f"{_LABELS}Classification",
        fields=parts,
    )
    fields = [inner, field("logits", "VectorField")]
    return field(
        name, "EmbeddedDocumentField", embedded_doc_type=f"{_LABELS}Classifications", fields=fields
    )


def default_fields() -> list[Json]:
    sizes = [field(name, "IntField") for name in ("size_bytes", "width", "height", "num_channels")]
    image = "fiftyone.core.metadata.ImageMetadata"
    return [
        field("id", "ObjectIdField"),
        field("filepath", "StringField"),
        field("tags", "ListField", subfield=f"{_FIELDS}StringField"),
        field(
            "metadata",
            "EmbeddedDocumentField",
            embedded_doc_type=image,
            fields=[*sizes, field("mime_type", "StringField")],
        ),
        field("_media_type", "StringField"),
        field("_rand", "FloatField"),
        field("_dataset_id", "ObjectIdField"),
        field("created_at", "DateTimeField", read_only=True),
        field("last_modified_at", "DateTimeField", read_only=True),
    ]


def kind_of_column(column: pa.DataType) -> str:
    if pa.types.is_boolean(column):
        return "BooleanField"
    if pa.types.is_integer(column):
        return "IntField"
    return "FloatField" if pa.types.is_floating(column) else "StringField"


def field_names(names: tuple[str, ...]) -> dict[str, str]:
    """Return a name that FiftyOne accepts for every column; different columns have different names.

    >>> field_names(("box share", "tags", "box_share"))
    {'box share': 'box_share', 'tags': 'meta_tags', 'box_share': 'box_share_2'}
    """
    chosen: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"\W", "_", name).strip("_") or "column"
        plain = f"meta_{plain}" if plain in RESERVED or plain[0].isdigit() else plain
        number, free = 2, plain
        while free in chosen.values():
            free, number = f"{plain}_{number}", number + 1
        chosen[name] = free
    return chosen


def saved_view(dataset_id: Json, name: str, tags: list[str], description: str) -> Json:
    stage = {
        "_cls": "fiftyone.core.stages.MatchTags",
        "kwargs": [["tags", tags], ["bool", True], ["all", False]],
    }
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return {
        "_id": object_id("view", name),
        "_dataset_id": dataset_id,
        "name": name,
        "slug": slug,
        "description": description,
        "color": None,
        "view_stages": [json.dumps(stage)],
        "created_at": None,
        "last_modified_at": None,
        "last_loaded_at": None,
    }
