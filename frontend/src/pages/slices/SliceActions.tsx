import { useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { DismissDialog, WordsDialog } from "./TextDialogs";
import { MembershipDialog } from "./MembershipDialog";
import { MergeDialog } from "./MergeDialog";
import { useRun } from "./useRun";
import { useSliceChange } from "./useSliceChange";

type Opened = "words" | "members" | "merge" | "dismiss" | null;

/** What an owner can do with a slice. */
export function SliceActions({ slice }: { slice: Schemas["SlicePageView"] }) {
  const [opened, setOpened] = useState<Opened>(null);
  const { query } = useRun();
  const { slice_id } = slice.line;
  const close = () => setOpened(null);
  const restore = useSliceChange(slice_id, () => unwrap(api.POST("/api/slices/{slice_id}/restore", { params: { path: { slice_id }, query } })), close);
  return (
    <>
      <Button onClick={() => setOpened("words")}>Edit words</Button>
      {slice.line.dismissed ? (
        <Button onClick={() => restore.mutate(undefined)} disabled={restore.isPending}>Restore</Button>
      ) : (
        <>
          <Button onClick={() => setOpened("members")}>Change members</Button>
          <Button onClick={() => setOpened("merge")}>Merge</Button>
          <Button kind="danger" onClick={() => setOpened("dismiss")}>Dismiss</Button>
        </>
      )}
      {restore.error && <ErrorNote error={restore.error} />}
      {opened === "words" && <WordsDialog slice={slice} onClose={close} />}
      {opened === "members" && <MembershipDialog slice={slice} onClose={close} />}
      {opened === "merge" && <MergeDialog slice={slice} onClose={close} />}
      {opened === "dismiss" && <DismissDialog slice={slice} onClose={close} />}
    </>
  );
}
