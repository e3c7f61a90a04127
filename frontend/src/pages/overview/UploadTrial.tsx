import { useMutation } from "@tanstack/react-query";
import { useEffect, useId, useState } from "react";
import { api, told, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { useMayChange } from "../../app/session";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { percent } from "../../components/figures";
import { PictureTile } from "../../components/PictureTile";
import "./trial.css";

type Trial = Schemas["TrialView"];

const LARGEST = 20 * 1024 * 1024;

/** Send a picture; the server forgets it when it has answered. */
async function tried(file: File): Promise<Trial> {
  if (file.size > LARGEST) throw new Error("The picture is larger than 20 MB. Choose a smaller one.");
  const form = new FormData();
  form.append("file", file);
  const body = { file: "" } as Schemas["Body_uploads_picture"];
  return told(api.POST("/api/uploads/picture", { body, bodySerializer: () => form }));
}

/** Try a picture: what the classifier makes of it, and which samples look like it. */
export function UploadTrial() {
  const mayChange = useMayChange();
  const id = useId();
  const [shown, setShown] = useState<string | null>(null);
  const trial = useMutation({ mutationFn: tried });
  useEffect(() => () => { if (shown) URL.revokeObjectURL(shown); }, [shown]);
  if (isStatic() || !mayChange) return null;
  const choose = (file: File | undefined) => {
    if (!file) return;
    setShown(URL.createObjectURL(file));
    trial.mutate(file);
  };
  return (
    <Card title="Try a picture">
      <p id={id} className="quiet">Choose a picture of your own: see what the classifier says of it, and which samples look like it. It is not kept.</p>
      <label className="field">
        <span>Picture</span>
        <input type="file" accept="image/*" aria-describedby={id} onChange={(event) => choose(event.target.files?.[0])} />
      </label>
      <div role="status" className="trial">
        {trial.isPending && <p className="loading">Looking at the picture …</p>}
        {trial.data && !trial.isPending && <TrialResult trial={trial.data} picture={shown} />}
      </div>
      {trial.isError && <div className="trial"><ErrorNote error={trial.error} /></div>}
    </Card>
  );
}

function TrialResult({ trial, picture }: { trial: Trial; picture: string | null }) {
  return (
    <>
      <div className="trial-answer">
        {picture && <img src={picture} alt="The picture that you chose" className="trial-picture" />}
        <ol aria-label="Likeliest classes">
          {trial.classes.map(({ title, probability }) => (
            <li key={title}>
              <span>{title}</span>
              <meter min={0} max={1} value={probability} aria-label={`${title}: ${percent(probability)}`} />
              <span className="number">{percent(probability)}</span>
            </li>
          ))}
        </ol>
      </div>
      {trial.nearest.length > 0 && (
        <>
          <h3>Samples that look like it</h3>
          <div className="trial-nearest">
            {trial.nearest.map((near) => (
              <PictureTile key={near.row} tables={trial.tables} sample={{ ...near, note: near.similarity.toFixed(2) }} />
            ))}
          </div>
        </>
      )}
    </>
  );
}
