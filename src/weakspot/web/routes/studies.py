"""Studies: what they are about, invitations, time, who takes part, export; and the tutorial, a tiny planted world to learn on."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Response
from pydantic import Field

from weakspot.core.errors import DataError
from weakspot.web.jobs import JobView
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import (
    Annotator,
    Anyone,
    Changing,
    ChangingNow,
    Owner,
    Parts,
    ProjectReader,
    ServerParts,
    attachment,
)
from weakspot.web.services.classes import class_list
from weakspot.web.services.studies import (
    N_IMAGES,
    StudyTable,
    StudyTableRow,
    TutorialAnswer,
    TutorialWorld,
    ask_for_repairs,
    best_triples,
    repairs_of,
    study_table,
    table_csv,
    timings_csv,
    tutorial_answer,
    tutorial_image,
    tutorial_world,
)
from weakspot.web.services.view import View
from weakspot.web.state.store import Person, Role
from weakspot.web.state.studies import (
    MAX_STRETCH,
    ClassTitle,
    InviteView,
    MadeInviteView,
    Participant,
    StudyPlan,
    StudyView,
    agree,
    answer_attention,
    consent_of,
    consents_of,
    create_study,
    did_tutorial,
    finish_class,
    finish_tutorial,
    finished_by,
    invites_of,
    make_invite,
    open_or_close,
    own_figures,
    participants,
    report_activity,
    revoke_invite,
    seconds_by_class,
    stretches,
    studies_for,
    study_of,
    study_phrases,
)

router = APIRouter(prefix="/api", tags=["studies"])

N_CLASSES = 4
StudyId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
InviteId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class StudyRequest(StudyPlan):
    """A study to begin.

    Args:
        attention_answer: the right answer to its attention check.
    """

    attention_answer: str = Field(default="", max_length=500)


class InviteRequest(View):
    """An invitation to make.

    Args:
        role: what those who accept may do.
        uses: how many people may accept.
        days: how long it can be accepted.
    """

    role: Literal[Role.ANNOTATOR, Role.VIEWER] = Role.ANNOTATOR
    uses: int = Field(default=1, ge=1, le=1000)
    days: int = Field(default=14, ge=1, le=365)


class Stretch(View):
    """Some time at work.

    Args:
        seconds: how long, since the last report.
        class_title: the class that was worked on.
    """

    seconds: float = Field(ge=0, le=MAX_STRETCH, allow_inf_nan=False)
    class_title: ClassTitle | None = None


class FinishedClass(View):
    """A class that somebody is done with, or is not after all."""

    class_title: ClassTitle
    is_finished: bool = True


class AttentionAnswer(View):
    """An answer to the attention check."""

    answer: str = Field(max_length=500)


class RepairsRequest(View):
    """Which phrases to repair by: the best of every person and class, or all."""

    is_every: bool = False


class OwnProgress(View):
    """How far whoever asks is in a study.

    Args:
        seconds: time at work.
        n_phrases: how many they submitted.
        finished: classes that they are done with.
        did_tutorial: whether they went through the tutorial.
        agreed: when they agreed to take part; empty if they have not.
        has_answered: whether they answered the attention check.
    """

    seconds: float
    n_phrases: int
    finished: list[str]
    did_tutorial: bool
    agreed: str
    has_answered: bool


@router.get("/studies")
def studies(person: Anyone, parts: Parts) -> dict[str, list[StudyView]]:
    """Return the studies that somebody may see, newest first."""
    return {"studies": studies_for(parts.state, person)}


@router.post("/studies")
def create(asked: StudyRequest, _person: Owner, parts: Parts) -> StudyView:
    """Begin a study."""
    known = parts.workspace.problems
    unknown = [title for title in asked.classes if title not in known]
    if unknown:
        raise DataError("There is no such class.", where="classes", given=unknown[0])
    _check_options(parts, asked)
    classes = asked.classes or promising_classes(parts)
    return create_study(
        parts.state,
        title=asked.title,
        classes=classes,
        instructions=asked.instructions,
        options=asked.options,
        attention=asked.attention_answer,
    )


@router.get("/studies/{study_id}")
def study(study_id: StudyId, person: Anyone, parts: Parts) -> StudyView:
    """Return a study."""
    return study_of(parts.state, person, study_id)


@router.get("/studies/{study_id}/progress")
def own_progress(study_id: StudyId, person: Anyone, parts: Parts) -> OwnProgress:
    """Return how far whoever asks is in a study."""
    study_of(parts.state, person, study_id)
    return _progress(parts, person, study_id)


@router.post("/studies/{study_id}/close")
def close(study_id: StudyId, person: Owner, parts: Parts, changing: ChangingNow) -> StudyView:
    """End a study for now; its phrases stay."""
    found = open_or_close(parts.state, person, study_id, is_open=False)
    _note_study(changing, found, "Closed")
    return found


def _note_study(changing: Changing, found: StudyView, what: str) -> None:
    subject, was_open = f"study {found.study_id}", not found.is_open
    sentence = f"{what} the study “{found.title}”"
    changing.note("study", subject, sentence, study=found.study_id, was_open=was_open)


@router.post("/studies/{study_id}/reopen")
def reopen(study_id: StudyId, person: Owner, parts: Parts, changing: ChangingNow) -> StudyView:
    """Let a study go on."""
    found = open_or_close(parts.state, person, study_id, is_open=True)
    _note_study(changing, found, "Reopened")
    return found


@router.get("/studies/{study_id}/invites")
def invites(study_id: StudyId, person: Owner, parts: Parts) -> dict[str, list[InviteView]]:
    """Return the invitations into a study, newest first."""
    return {"invites": invites_of(parts.state, person, study_id)}


@router.post("/studies/{study_id}/invites")
def invite(study_id: StudyId, asked: InviteRequest, person: Owner, parts: Parts) -> MadeInviteView:
    """Invite people into a study; the token is shown this once."""
    return make_invite(
        parts.state, person, study_id, role=asked.role, uses=asked.uses, days=asked.days
    )


@router.post("/studies/{study_id}/invites/{invite_id}/revoke")
def revoke(study_id: StudyId, invite_id: InviteId, person: Owner, parts: Parts) -> InviteView:
    """Take an invitation back; who accepted it stays."""
    study_of(parts.state, person, study_id)
    return revoke_invite(parts.state, study_id, invite_id)


@router.get("/studies/{study_id}/people")
def people(study_id: StudyId, person: ProjectReader, parts: Parts) -> dict[str, list[Participant]]:
    """Return who takes part, in the order they came, with their time and best scores."""
    return {"people": participants(parts.state, person, study_id)}


@router.post("/studies/{study_id}/activity")
def activity(study_id: StudyId, stretch: Stretch, person: Annotator, parts: Parts) -> OwnProgress:
    """Write down time at work; never more than the clock allows."""
    report_activity(
        parts.state, person, study_id, seconds=stretch.seconds, class_title=stretch.class_title
    )
    return _progress(parts, person, study_id)


@router.post("/studies/{study_id}/finished")
def finished(
    study_id: StudyId, done: FinishedClass, person: Annotator, parts: Parts
) -> OwnProgress:
    """Write down that somebody is done with a class."""
    finish_class(parts.state, person, study_id, done.class_title, is_finished=done.is_finished)
    return _progress(parts, person, study_id)


@router.post("/studies/{study_id}/consent")
def consent(study_id: StudyId, person: Annotator, parts: Parts) -> OwnProgress:
    """Agree to take part in a study."""
    agree(parts.state, person, study_id)
    return _progress(parts, person, study_id)


@router.post("/studies/{study_id}/attention")
def attention(
    study_id: StudyId, given: AttentionAnswer, person: Annotator, parts: Parts
) -> OwnProgress:
    """Answer the attention check of a study, once; whether it was right is not told."""
    answer_attention(parts.state, person, study_id, given.answer)
    return _progress(parts, person, study_id)


@router.get(
    "/studies/{study_id}/timings.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {}}}},
)
def timings(study_id: StudyId, person: ProjectReader, parts: Parts) -> Response:
    """Return every stretch of time at work: who, on which class, when, for how long."""
    rows = stretches(parts.state, person, study_id)
    return attachment(timings_csv(rows), "timings.csv", "text/csv")


@router.get("/studies/{study_id}/table")
def table(study_id: StudyId, person: ProjectReader, parts: Parts) -> StudyTable:
    """Return all phrases of a study, with their figures."""
    return _table(parts, person, study_id)


@router.get(
    "/studies/{study_id}/table.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {}}}},
)
def table_file(study_id: StudyId, person: ProjectReader, parts: Parts) -> Response:
    """Return the same as a file."""
    return attachment(table_csv(_table(parts, person, study_id)), "study.csv", "text/csv")


@router.post("/studies/{study_id}/repairs")
def repair(study_id: StudyId, wanted: RepairsRequest, person: Owner, parts: Parts) -> JobView:
    """Start the work that repairs by phrases of a study, for the table."""
    entries = _entries(parts, person, study_id)
    triples = (
        list(dict.fromkeys(entry.triple for entry in entries))
        if wanted.is_every
        else best_triples(entries)
    )
    if not triples:
        raise DataError("There is no phrase in this study yet.")
    groups = study_of(parts.state, person, study_id).options.groups
    ask_for_repairs(parts.workspace.project, study_id, triples, groups=groups)
    return parts.jobs.start("study-repairs", {"study": study_id}, by=person.name)


def promising_classes(parts: ServerParts) -> list[str]:
    """Return the classes that a study is about unless its owner says otherwise.

    Raises:
        DataError: if the project has no class.
    """
    ranked = class_list(parts.workspace).classes
    chosen = [row.title for row in ranked if row.is_promising] or [row.title for row in ranked]
    if not chosen:
        raise DataError("The project has no classes to look at.", fix="Run `weakspot ingest`.")
    return chosen[:N_CLASSES]


def _progress(parts: ServerParts, person: Person, study_id: str) -> OwnProgress:
    seconds, n_phrases = own_figures(parts.state, person, study_id)
    agreed, attention = consent_of(parts.state, person, study_id)
    return OwnProgress(
        agreed=agreed,
        has_answered=attention is not None,
        seconds=seconds,
        n_phrases=n_phrases,
        finished=finished_by(parts.state, person, study_id),
        did_tutorial=did_tutorial(parts.state, person),
    )


def _entries(parts: ServerParts, person: Person, study_id: str) -> list[StudyTableRow]:
    return [
        StudyTableRow(
            person_id=person_id,
            person=one.by,
            is_accepted=one.slice_id is not None,
            **one.model_dump(exclude={"by", "slice_id", "phrase_id"}),
        )
        for person_id, one in study_phrases(parts.state, person, study_id)
    ]


def _table(parts: ServerParts, person: Person, study_id: str) -> StudyTable:
    entries = _entries(parts, person, study_id)
    groups = study_of(parts.state, person, study_id).options.groups
    return study_table(
        entries,
        repairs_of(parts.workspace, study_id, groups=groups),
        seconds_by_class(parts.state, study_id),
        consents_of(parts.state, study_id),
    )


def _check_options(parts: ServerParts, asked: StudyRequest) -> None:
    """Refuse groups that are no column, and a check without an answer or the other way round."""
    columns = parts.workspace.samples.dataset.metadata_names
    if asked.options.groups and asked.options.groups not in columns:
        raise DataError(
            "There is no such column to take groups from.",
            where="options.groups",
            given=asked.options.groups,
            fix=f"Choose one of {list(columns)[:50]}.",
        )
    if bool(asked.options.attention_question.strip()) != bool(asked.attention_answer.strip()):
        raise DataError(
            "An attention check is a question and its answer.", where="attention_answer"
        )


tutorial = APIRouter(prefix="/api/tutorial", tags=["tutorial"])
Number = Annotated[int, Path(ge=0, le=2**31)]


class TutorialPhrase(View):
    """Words that somebody tries."""

    phrase: str = Field(max_length=300)


@tutorial.get("")
def planted_world(person: Anyone, parts: Parts) -> TutorialWorld:
    """Return the planted images and what the AI made of them."""
    return tutorial_world(did_tutorial=did_tutorial(parts.state, person))


@tutorial.get(
    "/images/{number}", response_class=Response, responses={200: {"content": {"image/png": {}}}}
)
def planted_image(number: Number, _person: Anyone) -> Response:
    """Return a planted image."""
    if number >= N_IMAGES:
        raise RefusedError(404, "There is no such image.")
    headers = {"Cache-Control": "private, max-age=86400"}
    return Response(tutorial_image(number), media_type="image/png", headers=headers)


@tutorial.post("/phrase")
def try_phrase(request: TutorialPhrase, _person: Anyone) -> TutorialAnswer:
    """Answer words that somebody tries; nothing is kept."""
    return tutorial_answer(request.phrase)


@tutorial.post("/done")
def finish(person: Anyone, parts: Parts) -> TutorialWorld:
    """Remember that somebody went through the tutorial."""
    finish_tutorial(parts.state, person)
    return planted_world(person, parts)
