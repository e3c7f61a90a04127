/** What others do is seen here, too: the server tells that something changed, and whatever is shown is asked for again. */
import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { allBut, askAgain } from "../api/askAgain";
import { isOwnChange, rememberChange } from "../api/changes";
import { serverRoot } from "../api/client";
import { isStatic } from "../api/static";
import { renewal, type Told } from "./renewal";

const AGAIN_MILLISECONDS = 5000;
/** What changes only with the samples themselves. */
const LASTING = ["session", "health", "jobs", "map", "class samples", "phrase", "suggestions", "nearest", "sample file"];

function renew(queries: QueryClient, what: "nothing" | "some" | "all"): void {
  if (what === "nothing") return;
  const lasting = what === "all" ? ["session", "health"] : LASTING;
  void askAgain(queries, allBut(...lasting));
}

/** Listen as long as the page is looked at. A page in the background holds no connection; it learns what it missed when it is looked at again. */
export function useLive(isWanted: boolean): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (!isWanted || isStatic() || typeof EventSource === "undefined") return undefined;
    let source: EventSource | null = null;
    let timer = 0;
    let before: Told | null = null;
    const close = () => {
      window.clearTimeout(timer);
      source?.close();
      source = null;
    };
    const open = () => {
      close();
      if (document.visibilityState === "hidden") return;
      source = new EventSource(`${serverRoot}/api/live`);
      source.addEventListener("change", (event) => {
        const told = JSON.parse(String(event.data)) as Told;
        const what = renewal(before, told, isOwnChange(told.version));
        rememberChange(told.version);
        before = told;
        renew(queries, what);
      });
      source.onerror = () => {
        // A browser gives up after a refusal, for example when the session has ended or the server starts again.
        if (source?.readyState === EventSource.CLOSED) timer = window.setTimeout(open, AGAIN_MILLISECONDS);
      };
    };
    open();
    document.addEventListener("visibilitychange", open);
    return () => {
      document.removeEventListener("visibilitychange", open);
      close();
    };
  }, [isWanted, queries]);
}
