import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { percent, range } from "../../components/figures";
import { IntervalBar } from "../../components/IntervalBar";
import { generatedAddress } from "./generation";

type Generated = { digest: string; answer: string; fails: boolean };
type Props = {
  title: string;
  prompt?: string;
  rate: Schemas["Share"];
  baseline: Schemas["Share"] | null;
  predictions: Record<string, number>;
  images: Generated[];
  children?: ReactNode;
};

const MOST_LABELS = 5;

/** What one caption did: failure rate beside that of the baseline, predictions and generated images. */
export function CaptionRow({ title, prompt, rate, baseline, predictions, images, children }: Props) {
  const labels = Object.entries(predictions).slice(0, MOST_LABELS);
  return (
    <div className="caption-row">
      <h3>{title} <span className="badge">generated</span></h3>
      {prompt && <p className="quiet">{prompt}</p>}
      <div className="rate-line">
        <span><strong>{percent(rate.value)}</strong> fail <span className="quiet">({rate.count} of {rate.total}, {range(rate.interval)})</span></span>
        <IntervalBar rate={rate.value} interval={rate.interval} label={`failure rate of ${title}`} {...(baseline ? { other: baseline.value } : {})} />
        {children}
      </div>
      {labels.length > 0 && <p className="quiet">Predicted as {labels.map(([label, count]) => `${label} (${count})`).join(", ")}.</p>}
      {images.length > 0 && <GeneratedImages images={images} label={`Generated images, ${title}`} />}
    </div>
  );
}

/** Generated images in a row; failures have a dashed orange frame and say so. */
function GeneratedImages({ images, label }: { images: Generated[]; label: string }) {
  return (
    <ul className="generated" aria-label={label}>
      {images.map((image, place) => (
        <li key={`${image.digest}${place}`} className={image.fails ? "is-wrong" : ""}>
          <img src={generatedAddress(image.digest)} alt={`generated, predicted as ${image.answer}`} width={96} height={96} loading="lazy" />
          <span aria-hidden="true">{image.fails ? "✗" : "✓"} {image.answer}</span>
        </li>
      ))}
    </ul>
  );
}
