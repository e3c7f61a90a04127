import { useState } from "react";
import { Link } from "wouter";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { SortedTable, type Column } from "../../components/SortedTable";
import { NewStudyDialog } from "./NewStudyDialog";
import { useStudies, type Study } from "./studyData";
import "./studies.css";

const COLUMNS: Column<Study>[] = [
  { key: "title", title: "Study", order: (row) => row.title, cell: (row) => <Link href={`/studies/${row.study_id}`}>{row.title}</Link> },
  { key: "classes", title: "Classes", cell: (row) => row.classes.join(", ") },
  { key: "state", title: "State", order: (row) => (row.is_open ? 0 : 1), cell: (row) => <span className={row.is_open ? "badge good" : "badge"}>{row.is_open ? "open" : "closed"}</span> },
  { key: "created", title: "Begun", order: (row) => row.created, cell: (row) => row.created.slice(0, 10) },
];

/** All studies, and a new one. */
export function StudiesPage() {
  const studies = useStudies();
  const mayChange = useMayChange();
  const [isNew, setNew] = useState(false);
  return (
    <>
      <PageHead title="Studies" aside={mayChange && <Button kind="primary" onClick={() => setNew(true)}>New study</Button>}>
        Invite people to say in their own words where the AI goes wrong. Each works alone; every phrase is kept with its score and the time it took.
      </PageHead>
      <Loaded query={studies} what="the studies">
        {({ studies: found = [] }) => (
          <Card>
            {found.length === 0 ? (
              <p className="quiet">There is no study yet.{mayChange && " Begin one, then send its invitation to people."}</p>
            ) : (
              <SortedTable rows={found} columns={COLUMNS} rowKey={(row) => row.study_id} caption="Studies" />
            )}
          </Card>
        )}
      </Loaded>
      {isNew && <NewStudyDialog onClose={() => setNew(false)} />}
    </>
  );
}
