import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { allBut, askAgain } from "../../api/askAgain";
import { api, unwrap, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { useMayChange } from "../../app/session";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { moment } from "../../components/figures";
import { Loading } from "../../components/Loading";
import { PageHead } from "../../components/PageHead";
import "../../marks/marks.css";

type Done = Schemas["Done"];

/** Who did what and when, each with a way back. */
export function ActivityPage() {
  const queries = useQueryClient();
  const found = useInfiniteQuery({
    queryKey: ["activity"],
    queryFn: ({ pageParam }) => unwrap(api.GET("/api/activity", { params: { query: pageParam === null ? {} : { before: pageParam } } })),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.older,
    enabled: !isStatic(),
  });
  const undo = useMutation({
    mutationFn: (item: string) => unwrap(api.POST("/api/activity/undo", { body: { item } })),
    onSettled: () => askAgain(queries, allBut("session")),
  });
  const done = found.data?.pages.flatMap((page) => page.done) ?? [];
  return (
    <>
      <PageHead title="Activity">Who did what and when. Undo takes back what was done here; tests that were made still count, and nothing is deleted.</PageHead>
      {isStatic() && <p className="note">This needs a server: open the project with <code>weakspot serve</code>.</p>}
      {undo.isError && <ErrorNote error={undo.error} />}
      {found.isLoading && <Loading what="what was done" />}
      {found.isError && <ErrorNote error={found.error} onRetry={() => void found.refetch()} />}
      {found.data && (
        <Card>
          {done.length === 0 && <p className="quiet">Nothing was done yet.</p>}
          <ol className="activity-list">
            {done.map((one) => <Line key={one.item} done={one} isPending={undo.isPending} onUndo={() => undo.mutate(one.item)} />)}
          </ol>
          {found.hasNextPage && <p><Button onClick={() => void found.fetchNextPage()} disabled={found.isFetchingNextPage}>Show older</Button></p>}
        </Card>
      )}
    </>
  );
}

function Line({ done, isPending, onUndo }: { done: Done; isPending: boolean; onUndo: () => void }) {
  const mayChange = useMayChange();
  return (
    <li className={done.is_undone ? "is-undone" : undefined}>
      <time dateTime={done.time} className="quiet">{moment(done.time)}</time>
      <span><strong>{done.by || "weakspot"}</strong> <span className="activity-what">{done.link ? <Link href={done.link}>{done.sentence}</Link> : done.sentence}</span> {done.is_undone && <span className="badge">undone</span>}</span>
      {mayChange && done.can_undo ? <Button kind="quiet" disabled={isPending} aria-label={`Undo: ${done.sentence}`} onClick={onUndo}>Undo</Button> : <span />}
    </li>
  );
}
