// @vitest-environment jsdom
import { act, cleanup, render } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { Link, Route, Router, useSearchParams } from "wouter";
import { useHashLocation } from "./hashLocation";

function Words() {
  const [params] = useSearchParams();
  return <p>{`said ${params.get("phrase")}`}</p>;
}

function Pages() {
  return (
    <Router hook={useHashLocation}>
      <Link href="/classes/apple?phrase=on%20grass">there</Link>
      <Route path="/classes/:title" component={Words} />
    </Router>
  );
}

afterEach(() => {
  cleanup();
  window.history.replaceState(null, "", "/");
});

describe("hashLocation", () => {
  it("reads path and query of an address that was opened again", () => {
    window.history.replaceState(null, "", "/#/classes/apple?phrase=green");
    expect(render(<Pages />).container.textContent).toContain("said green");
  });

  it("keeps the query of a link behind the #", () => {
    const page = render(<Pages />);
    act(() => page.getByText("there").click());
    expect(page.container.textContent).toContain("said on grass");
    expect(window.location.search).toBe("");
    expect(window.location.hash).toBe("#/classes/apple?phrase=on%20grass");
  });
});
