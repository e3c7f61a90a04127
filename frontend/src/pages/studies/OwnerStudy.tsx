import { Link } from "wouter";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { score } from "../../components/figures";
import { SortedTable, type Column } from "../../components/SortedTable";
import { duration } from "./activity";
import { Invitations } from "./Invitations";
import { StudyTableCard } from "./StudyTableCard";
import { useOwnerActions, usePeople, type Participant, type Study } from "./studyData";

/** What came of a study: people, phrases, invitations, export. */
export function OwnerStudy({ study }: { study: Study }) {
  const mayChange = useMayChange();
  const { setOpen } = useOwnerActions(study.study_id);
  return (
    <>
      <PageHead
        title={study.title}
        aside={mayChange && (
          <>
            <Link className="button plain" href={`/studies/${study.study_id}/work`}>Take part</Link>
            <Button onClick={() => setOpen.mutate(!study.is_open)} disabled={setOpen.isPending}>{study.is_open ? "Close the study" : "Open it again"}</Button>
          </>
        )}
      >
        <span className={study.is_open ? "badge good" : "badge"}>{study.is_open ? "open" : "closed"}</span> {study.classes.join(", ")}
      </PageHead>
      {setOpen.error && <ErrorNote error={setOpen.error} />}
      <div className="stack">
        {mayChange && <Invitations study={study} />}
        <People study={study} />
        <StudyTableCard study={study} />
        <Card title="How it is done">
          <dl className="facts">
            <dt>Suggestions</dt><dd>{study.options.shows_suggestions ? "words with their scores are offered" : "off: nothing scored is shown before typing"}</dd>
            <dt>Consent</dt><dd className="instructions">{study.options.consent || "not asked for"}</dd>
            <dt>Attention check</dt><dd>{study.options.attention_question || "none"}</dd>
            <dt>Given groups</dt><dd>{study.options.groups ? `${study.options.groups}, with the class: the same for everybody` : "none"}</dd>
            <dt>Instructions</dt><dd className="instructions">{study.instructions || "none"}</dd>
          </dl>
        </Card>
      </div>
    </>
  );
}

/** Who takes part and how far they are. */
function People({ study }: { study: Study }) {
  const people = usePeople(study.study_id);
  const columns: Column<Participant>[] = [
    { key: "name", title: "Person", order: (row) => row.name, cell: (row) => row.name },
    { key: "role", title: "Role", order: (row) => row.role, cell: (row) => row.role },
    { key: "tutorial", title: "Tutorial", cell: (row) => (row.did_tutorial ? "done" : "–") },
    { key: "done", title: "Classes done", isNumber: true, order: (row) => row.finished.length, cell: (row) => `${row.finished.length} of ${study.classes.length}` },
    { key: "time", title: "Time at work", isNumber: true, order: (row) => row.seconds, cell: (row) => duration(row.seconds) },
    { key: "phrases", title: "Phrases", isNumber: true, order: (row) => row.n_phrases, cell: (row) => row.n_phrases },
    { key: "accepted", title: "Accepted", isNumber: true, order: (row) => row.n_accepted, cell: (row) => row.n_accepted },
    { key: "best", title: "Best score", isNumber: true, order: (row) => row.best_score ?? -2, cell: (row) => score(row.best_score) },
    { key: "held", title: "Best held out", isNumber: true, order: (row) => row.best_held_out_score ?? -2, cell: (row) => score(row.best_held_out_score) },
  ];
  return (
    <Card title="People">
      <Loaded query={people} what="the people">
        {({ people: found = [] }) =>
          found.length === 0 ? <p className="quiet">Nobody has joined yet.</p> : <SortedTable rows={found} columns={columns} rowKey={(row) => row.person_id} caption="People in this study" />
        }
      </Loaded>
    </Card>
  );
}
