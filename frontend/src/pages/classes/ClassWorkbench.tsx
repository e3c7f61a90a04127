type Props = { title: string; studyId?: string };

/** The whole work area of one class: pictures, a sentence to complete, and what comes of it. */
export function ClassWorkbench({ title, studyId }: Props) {
  return <p className="quiet">{title}{studyId ? ` (${studyId})` : ""}</p>;
}
