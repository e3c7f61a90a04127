import { useRef, useState } from "react";
import { serverRoot } from "../../api/client";
import { Button } from "../../components/Button";
import { Form } from "../../components/Form";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { Loaded } from "../../components/Loaded";
import { SortedTable, type Column } from "../../components/SortedTable";
import { useInvites, useOwnerActions, type Invite, type MadeInvite, type Study } from "./studyData";

type Role = "annotator" | "viewer";

/** Make an invitation, and take others back. */
export function Invitations({ study }: { study: Study }) {
  const invites = useInvites(study.study_id);
  const { invite, revoke } = useOwnerActions(study.study_id);
  const [role, setRole] = useState<Role>("annotator");
  const [uses, setUses] = useState(10);
  const [days, setDays] = useState(14);
  const submit = () => invite.mutate({ role, uses, days });
  const columns: Column<Invite>[] = [
    { key: "role", title: "For", cell: (row) => `${row.role}s` },
    { key: "left", title: "Places left", isNumber: true, order: (row) => row.uses_left, cell: (row) => `${row.uses_left} of ${row.uses}` },
    { key: "expires", title: "Until", order: (row) => row.expires, cell: (row) => row.expires.slice(0, 16).replace("T", " ") },
    { key: "state", title: "State", cell: (row) => <span className={row.is_good ? "badge good" : "badge"}>{row.is_good ? "valid" : "no longer valid"}</span> },
    { key: "revoke", title: "", cell: (row) => row.is_good && <Button kind="danger" onClick={() => revoke.mutate(row.invite_id)} disabled={revoke.isPending}>Revoke</Button> },
  ];
  return (
    <Card title="Invitations">
      <Form className="row" onSubmit={submit} aria-label="New invitation">
        <label className="field">
          <span>Invited people may</span>
          <select value={role} onChange={(event) => setRole(event.target.value as Role)}>
            <option value="annotator">say phrases (annotator)</option>
            <option value="viewer">only look (viewer)</option>
          </select>
        </label>
        <label className="field"><span>People</span><input type="number" min={1} max={1000} required value={uses} onChange={(event) => setUses(event.target.valueAsNumber || 1)} /></label>
        <label className="field"><span>Valid for days</span><input type="number" min={1} max={365} required value={days} onChange={(event) => setDays(event.target.valueAsNumber || 1)} /></label>
        <Button kind="primary" type="submit" disabled={invite.isPending || !study.is_open}>Make a link</Button>
      </Form>
      {!study.is_open && <p className="quiet">The study is closed: nobody can be invited.</p>}
      {(invite.error ?? revoke.error) && <ErrorNote error={invite.error ?? revoke.error} />}
      {invite.data && <NewLink made={invite.data} />}
      <Loaded query={invites} what="the invitations">
        {({ invites: found = [] }) => (found.length > 0 ? <SortedTable rows={found} columns={columns} rowKey={(row) => row.invite_id} caption="Invitations, newest first" /> : null)}
      </Loaded>
    </Card>
  );
}

/** The link of a new invitation: shown this once. */
function NewLink({ made }: { made: MadeInvite }) {
  const field = useRef<HTMLInputElement>(null);
  const [isCopied, setCopied] = useState(false);
  const address = `${serverRoot}/${made.fragment}`;
  const copy = async () => {
    field.current?.select();
    try {
      await navigator.clipboard.writeText(address);
      setCopied(true);
    } catch {
      setCopied(false);
    }
  };
  return (
    <div className="note new-link" role="status">
      <p>Send this link. It is shown only now: whoever has it can log in.</p>
      <div className="row">
        <input ref={field} className="link-field" readOnly value={address} aria-label="Invitation link" onFocus={(event) => event.target.select()} />
        <Button onClick={() => void copy()}>{isCopied ? "Copied" : "Copy"}</Button>
      </div>
    </div>
  );
}
