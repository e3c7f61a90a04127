import { useSearchParams } from "wouter";

/** Return the run that the address names, if any, and the same as part of requests and links. */
export function useRun(): { run: string | null; query: { run?: string }; linkTo: (sliceId: string) => string; choose: (run: string) => void } {
  const [params, setParams] = useSearchParams();
  const run = params.get("run");
  return {
    run,
    query: run ? { run } : {},
    linkTo: (sliceId) => `/slices/${sliceId}`,
    choose: (chosen) => setParams((before) => {
      const next = new URLSearchParams(before);
      if (chosen) next.set("run", chosen);
      else next.delete("run");
      return next;
    }),
  };
}
