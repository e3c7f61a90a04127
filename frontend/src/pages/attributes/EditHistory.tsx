import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { Loaded } from "../../components/Loaded";
import { useMayChange } from "../../app/session";
import { useEdit, useEdits } from "./useAttributes";

/** What people changed, newest first, each with a way back. */
export function EditHistory({ version }: { version: number }) {
  const mayChange = useMayChange();
  const edits = useEdits();
  const edit = useEdit(version);
  return (
    <Loaded query={edits} what="the edits">
      {(data) =>
        data.edits.length === 0 ? (
          <p className="quiet">Nothing was changed yet.</p>
        ) : (
          <>
            {edit.error && <ErrorNote error={edit.error} />}
            <ol className="edit-list" reversed>
              {data.edits.map((one) => (
                <li key={one.number} className={one.state === "undone" ? "is-undone" : undefined}>
                  <span>{one.sentence}{one.state === "undone" && <span className="badge">undone</span>}</span>
                  <span className="quiet attribute-small">{one.by}, <time dateTime={one.time}>{new Date(one.time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}</time></span>
                  {mayChange && one.state !== "happened" && (
                    <Button
                      kind="quiet"
                      disabled={edit.isPending}
                      aria-label={`${one.state === "undone" ? "Do again" : "Undo"}: ${one.sentence}`}
                      onClick={() => edit.mutate({ kind: one.state === "undone" ? "redo" : "undo", target: one.number })}
                    >
                      {one.state === "undone" ? "Do again" : "Undo"}
                    </Button>
                  )}
                </li>
              ))}
            </ol>
          </>
        )
      }
    </Loaded>
  );
}
