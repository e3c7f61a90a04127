import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { ThemeSwitch } from "../../app/ThemeSwitch";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { Form } from "../../components/Form";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import { ChecksCard } from "./ChecksCard";
import { DataLook } from "./DataLook";
import { PlacePicker } from "./PlacePicker";
import "./setup.css";

type State = Schemas["SetupState"];
type Picking = "" | "data" | "model";
type Asked = { source: string; columns: Record<string, string> };

const SETUP = ["setup"];

/** A project without samples: ask where they are and what classifies them, look at both, then begin. */
export function SetupPage() {
  const query = useQuery({ queryKey: SETUP, queryFn: () => unwrap(api.GET("/api/setup")), staleTime: Infinity });
  return (
    <main id="main" className="setup stack">
      <PageHead title="Set up a project" aside={<ThemeSwitch />}>
        {query.data ? <>It is made in <code>{query.data.project}</code>. Images stay where they are, and nothing leaves this machine.</> : ""}
      </PageHead>
      <Loaded query={query} what="the set-up">{(state) => <Steps state={state} />}</Loaded>
    </main>
  );
}

function Steps({ state }: { state: State }) {
  const queries = useQueryClient();
  const [source, setSource] = useState(state.source);
  const [asked, setAsked] = useState<Asked>({ source: state.source, columns: state.columns });
  const [classifier, setClassifier] = useState(state.classifier);
  const [picking, setPicking] = useState<Picking>("");
  const look = useQuery({
    queryKey: ["setup look", asked],
    queryFn: () => unwrap(api.POST("/api/setup/look", { body: asked })),
    enabled: Boolean(asked.source),
    retry: false,
    refetchOnWindowFocus: false,
    placeholderData: (before) => (before?.source === asked.source ? before : undefined),
  });
  const write = useMutation({
    mutationFn: () => unwrap(api.POST("/api/setup", { body: { ...asked, source, classifier } })),
    onSuccess: (written) => {
      setSource(written.source);
      setAsked({ source: written.source, columns: written.columns });
      setClassifier(written.classifier);
      queries.setQueryData(SETUP, written);
    },
  });
  const lookAt = (path: string) => {
    setSource(path);
    if (path === asked.source) void look.refetch();
    else setAsked({ source: path, columns: {} });
  };
  const pick = (path: string) => {
    if (picking === "model") setClassifier(path);
    else lookAt(path);
    setPicking("");
  };
  const seen = source === asked.source && !look.error ? look.data : undefined;
  const isSame = state.is_written && source === state.source && classifier === state.classifier && JSON.stringify(asked.columns) === JSON.stringify(state.columns);
  const mayWrite = seen && !seen.problem && !isSame && !write.isPending && (classifier || seen.has_predictions);
  return (
    <>
      {picking && <PlacePicker what={picking} start={picking === "data" ? source : classifier} onPick={pick} onClose={() => setPicking("")} />}
      <Card title="1. Images and labels">
        <Form className="row" onSubmit={() => lookAt(source)}>
          <label className="field setup-path"><span>A folder of images (one folder for each class), or a table</span><input value={source} maxLength={4000} onChange={(event) => setSource(event.target.value)} /></label>
          <Button onClick={() => setPicking("data")}>Choose …</Button>
          <Button type="submit" disabled={!source || look.isFetching}>{look.isFetching ? "Looking …" : "Look"}</Button>
        </Form>
        {look.error && <ErrorNote error={look.error} />}
        {seen && <DataLook look={seen} stamp={look.dataUpdatedAt} columns={asked.columns} onColumns={(columns) => setAsked({ source, columns })} />}
      </Card>
      <Card title="2. Classifier">
        <Form className="row" onSubmit={() => write.mutate()}>
          <label className="field setup-path"><span>A model file (.onnx, .pt, .skops){state.may_use_network ? ", transformers:NAME, timm:NAME, an http address or package.module:name" : ""}; empty if the table says what was predicted</span><input value={classifier} maxLength={4000} onChange={(event) => setClassifier(event.target.value)} /></label>
          <Button onClick={() => setPicking("model")}>Choose …</Button>
          <Button kind={isSame ? "plain" : "primary"} type="submit" disabled={!mayWrite}>{isSame ? "Kept" : "Keep and check"}</Button>
        </Form>
        {seen && !seen.has_predictions && !classifier && <p className="quiet">The data does not say what was predicted, so a classifier is needed.</p>}
        {write.error && <ErrorNote error={write.error} />}
      </Card>
      {isSame && <ChecksCard key={JSON.stringify(state)} />}
    </>
  );
}
