import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { allBut, askAgain } from "../../api/askAgain";
import type { Schemas } from "../../api/client";

type Changed = Schemas["ChangedSlice"];

/** Do something with a slice; everything shown is asked for again, and a slice that took the place of another is gone to. */
export function useSliceChange<Asked>(sliceId: string, change: (asked: Asked) => Promise<Changed>, onDone: () => void) {
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: change,
    onSuccess: (changed) => {
      void askAgain(queries, allBut("session"));
      onDone();
      if (changed.line.slice_id !== sliceId) navigate(`/slices/${changed.line.slice_id}`);
    },
  });
}
