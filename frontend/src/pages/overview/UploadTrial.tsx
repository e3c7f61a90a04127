import { useMutation } from "@tanstack/react-query";
import { useEffect, useId, useState } from "react";
import { api, unwrap, type Schemas } from "../../api/client";
import { isStatic } from "../../api/static";
import { useMayChange, useSession } from "../../app/session";
import { Card } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { percent } from "../../components/figures";
import { ImageTile } from "../../components/ImageTile";
import { openSample } from "../../viewer/imageSet";
import "./trial.css";

type Trial = Schemas["TrialView"];

const LARGEST = 20 * 1024 * 1024;

/** Send an image; the server forgets it when it has answered. */
async function tried(file: File): Promise<Trial> {
  if (file.size > LARGEST) throw new Error("The image is larger than 20 MB. Choose a smaller one.");
  const form = new FormData();
  form.append("file", file);
  const body = { file: "" };
  return unwrap(api.POST("/api/uploads/image", { body, bodySerializer: () => form }));
}

/** Try an image: what the classifier makes of it, and which samples look like it. */
export function UploadTrial() {
  const mayChange = useMayChange();
  const { has_images: hasImages } = useSession();
  const id = useId();
  const [shown, setShown] = useState<string | null>(null);
  const trial = useMutation({ mutationFn: tried });
  useEffect(() => () => { if (shown) URL.revokeObjectURL(shown); }, [shown]);
  if (isStatic() || !mayChange || !hasImages) return null;
  const choose = (file: File | undefined) => {
    if (!file) return;
    setShown(URL.createObjectURL(file));
    trial.mutate(file);
  };
  return (
    <Card title="Try an image">
      <p id={id} className="quiet">Choose an image of your own: see what the classifier says of it, and which samples look like it. It is not kept.</p>
      <label className="field">
        <span>Image</span>
        <input type="file" accept="image/*" aria-describedby={id} onChange={(event) => choose(event.target.files?.[0])} />
      </label>
      <div role="status" className="trial">
        {trial.isPending && <p className="loading">Looking at the image …</p>}
        {trial.data && <TrialResult trial={trial.data} image={shown} />}
      </div>
      {trial.isError && <div className="trial"><ErrorNote error={trial.error} /></div>}
    </Card>
  );
}

function TrialResult({ trial, image }: { trial: Trial; image: string | null }) {
  return (
    <>
      <div className="trial-answer">
        {image && <img src={image} alt="What you chose" className="trial-image" />}
        <ol aria-label="Likeliest classes">
          {trial.classes.map(({ class_name, probability }) => (
            <li key={class_name}>
              <span>{class_name}</span>
              <meter min={0} max={1} value={probability} aria-label={`${class_name}: ${percent(probability)}`} />
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
              <ImageTile key={near.row} tables={trial.tables} sample={{ ...near, note: near.score?.toFixed(2) ?? "" }} onOpen={() => openSample(near.row, trial.tables)} />
            ))}
          </div>
        </>
      )}
    </>
  );
}
