import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { api, unwrap } from "../../api/client";
import { useMayChange } from "../../app/session";
import { Card } from "../../components/Card";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { CounterfactualForm } from "./CounterfactualForm";
import { CounterfactualResult } from "./CounterfactualResult";
import { SearchForm } from "./SearchForm";
import { SearchResult } from "./SearchResult";
import "./search.css";

/** Captions, generated images, and how often the classifier fails on them. */
export function SearchPage() {
  const mayChange = useMayChange();
  const setup = useQuery({ queryKey: ["generation", "setup"], queryFn: () => unwrap(api.GET("/api/generation/setup")) });
  const series = useQuery({ queryKey: ["generation", "counterfactuals"], queryFn: () => unwrap(api.GET("/api/generation/counterfactuals")) });
  const searches = useQuery({ queryKey: ["generation", "searches"], queryFn: () => unwrap(api.GET("/api/generation/searches")) });
  // What was generated comes first, as soon as there is something to look at.
  const hasResults = (series.data?.results?.length ?? 0) + (searches.data?.results?.length ?? 0) > 0;
  const forms = (
    <Loaded key="forms" query={setup} what="what can be generated">
      {(found) =>
        found.why_not ? (
          <div className="note warn" role="status"><p>No images can be generated in this project. {found.why_not}</p></div>
        ) : mayChange ? (
          <div className="columns">
            <CounterfactualForm setup={found} />
            <SearchForm setup={found} />
          </div>
        ) : (
          <div className="note" role="status"><p>Generating needs <code>weakspot serve</code> and its owner; here is what was generated so far.</p></div>
        )
      }
    </Loaded>
  );
  const results = (
    <Fragment key="results">
      <Card title="Captions measured">
        <Loaded query={series} what="captions">
          {({ results = [] }) =>
            results.length === 0 ? <p className="quiet">None yet. Write captions and press “Generate and measure”.</p> : <>{results.map((one, place) => <CounterfactualResult key={one.result_id} result={one} isOpen={place === 0} />)}</>
          }
        </Loaded>
      </Card>
      <Card title="Searches">
        <Loaded query={searches} what="searches">
          {({ results = [] }) =>
            results.length === 0 ? <p className="quiet">None yet. A search writes its own captions and proves which make the classifier fail.</p> : <>{results.map((one, place) => <SearchResult key={one.result_id} result={one} isOpen={place === 0} />)}</>
          }
        </Loaded>
      </Card>
    </Fragment>
  );
  return (
    <>
      <PageHead title="Generated images">
        Say what is changed in images of a class, and see how often the classifier then fails. Everything here is generated, not
        photographed: a reason to look for real images, not a proof about them.
      </PageHead>
      <div className="stack">
        {hasResults ? [results, forms] : [forms, results]}
      </div>
    </>
  );
}
