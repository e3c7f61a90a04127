import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";
import { allBut, askAgain, named } from "./askAgain";

/** A query that is looked at; each of its answers comes when it is told to. */
function watch(name: string) {
  const queries = new QueryClient();
  const waiting: ((answer: string) => void)[] = [];
  const observer = new QueryObserver<string>(queries, { queryKey: [name], queryFn: () => new Promise((resolve) => waiting.push(resolve)), retry: false });
  const stop = observer.subscribe(() => undefined);
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
  return { queries, waiting, observer, stop, settle };
}

describe("askAgain", () => {
  it("drops a first answer that was under way when something changed", async () => {
    const { queries, waiting, observer, stop, settle } = watch("marks of");
    void askAgain(queries, named("marks of"));
    await settle();
    expect(waiting).toHaveLength(2);
    waiting[0]?.("before");
    waiting[1]?.("after");
    await settle();
    expect(observer.getCurrentResult().data).toBe("after");
    stop();
  });

  it("leaves alone what is not meant", async () => {
    const { queries, waiting, observer, stop, settle } = watch("session");
    void askAgain(queries, allBut("session"));
    await settle();
    waiting[0]?.("before");
    await settle();
    expect(waiting).toHaveLength(1);
    expect(observer.getCurrentResult().data).toBe("before");
    stop();
  });
});
