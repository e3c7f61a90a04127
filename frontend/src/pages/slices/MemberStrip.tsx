import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useSession } from "../../app/session";
import { ImageTile } from "../../components/ImageTile";
import { openSample } from "../../viewer/imageSet";
import { usePage } from "./sliceSamples";
import { useRun } from "./useRun";

const SHOWN = 4;
const SIDE = 56;

/** The deepest members of a slice in one line of a table; asked for when the line comes into sight. */
export function MemberStrip({ sliceId }: { sliceId: string }) {
  const { has_images: hasImages } = useSession();
  const { query } = useRun();
  const box = useRef<HTMLDivElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) setSeen(true);
    }, { rootMargin: "200px" });
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const page = useQuery({ ...usePage(sliceId, "members")(0), enabled: isSeen && hasImages, retry: false });
  if (!hasImages) return null;
  const { data } = page;
  const samples = data?.samples.slice(0, SHOWN) ?? [];
  return (
    <div ref={box} className="member-strip">
      {samples.map((sample) => <ImageTile key={sample.row} sample={sample} tables={data?.tables ?? ""} side={SIDE} onOpen={() => openSample(sample.row, data?.tables ?? "", { slice_id: sliceId, ...query })} />)}
    </div>
  );
}
