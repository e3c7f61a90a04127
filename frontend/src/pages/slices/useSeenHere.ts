import { useCallback, useRef } from "react";
import { SEEN, seenChange } from "../../api/changes";

/** Return what gives headers that say what was known when a dialog was opened: what somebody else did since is told first. A second try knows of it. */
export function useSeenHere(): () => Record<string, string> {
  const known = useRef(seenChange());
  return useCallback(() => {
    const told = known.current;
    known.current = seenChange();
    return told === null ? {} : { [SEEN]: String(told) };
  }, []);
}
