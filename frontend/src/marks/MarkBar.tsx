import { useMutation } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { useLocation } from "wouter";
import { serverRoot } from "../api/client";
import { Button } from "../components/Button";
import { ErrorNote } from "../components/ErrorNote";
import { counted } from "../components/figures";
import { MarkForm, type Saying } from "./MarkForm";
import { pickOut, useMarking, useMayMark, useTakingBack, type Meant, type Said } from "./useMarks";
import "./marks.css";

type Props = { meant: Meant; count: number; noun?: string; isAddress?: boolean; isOnMap?: boolean; children?: ReactNode };

/** What can be done with many images: say something of them, see only them, see them on the map, take their list along. */
export function MarkBar({ meant, count, noun = "images", isAddress = false, isOnMap = false, children }: Props) {
  const mayMark = useMayMark();
  const [, navigate] = useLocation();
  const [saying, setSaying] = useState<Saying>(null);
  const marking = useMarking();
  const taking = useTakingBack();
  const picking = useMutation({
    mutationFn: async (then: (selection: string) => void) => then(await pickOut(meant)),
  });
  const say = (said: Said) => marking.mutate({ meant, said }, { onSuccess: () => setSaying(null) });
  const done = marking.data ?? taking.data;
  return (
    <div className="mark-bar" role="group" aria-label={`What to do with ${counted(count)} ${noun}`}>
      <div className="row">
        <strong>{counted(count)} {noun}</strong>
        {mayMark && saying === null && (
          <>
            <Button onClick={() => setSaying("label")}>Labels are wrong</Button>
            <Button onClick={() => say({ kind: "unusable" })} disabled={marking.isPending}>Unusable</Button>
            <Button onClick={() => setSaying("tag")}>Tag</Button>
            <Button onClick={() => setSaying("note")}>Note</Button>
            <Button onClick={() => taking.mutate({ meant })} disabled={taking.isPending}>Take marks back</Button>
          </>
        )}
        {!isAddress && (
          <>
            <Button onClick={() => picking.mutate((selection) => navigate(`/images?selection=${selection}`))}>See only these</Button>
            {!isOnMap && <Button onClick={() => picking.mutate((selection) => navigate(`/map?selection=${selection}`))}>Show on the map</Button>}
            <Button onClick={() => picking.mutate((selection) => window.location.assign(`${serverRoot}/api/image-list?selection=${selection}`))}>Download the list</Button>
          </>
        )}
        {children}
      </div>
      <MarkForm saying={saying} isPending={marking.isPending} onSay={say} onCancel={() => setSaying(null)} />
      <div role="status">{done && !marking.isError && <p className="quiet">{done.sentence}.</p>}</div>
      {[marking, taking, picking].map((one, place) => one.isError && <ErrorNote key={place} error={one.error} />)}
    </div>
  );
}
