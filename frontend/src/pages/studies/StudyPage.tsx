import { Link, useLocation, useParams } from "wouter";
import { useSession } from "../../app/session";
import { Loaded } from "../../components/Loaded";
import { AnnotatorStudy } from "./AnnotatorStudy";
import { OwnerStudy } from "./OwnerStudy";
import { useProgress, useStudy } from "./studyData";
import { Tutorial } from "./tutorial/Tutorial";
import "./studies.css";

/** A study: the work itself for those who take part, what came of it for its owner. */
export function StudyPage() {
  const { id, step } = useParams<{ id: string; step?: string }>();
  const session = useSession();
  const [, go] = useLocation();
  const study = useStudy(id);
  const progress = useProgress(id);
  const isAnnotator = session.person.role === "annotator";
  const toStudy = () => go(`/studies/${id}`);
  return (
    <Loaded query={study} what="the study">
      {(found) => (
        <>
          {!isAnnotator && <p><Link href="/studies">← All studies</Link></p>}
          {step === "tutorial" ? (
            <Tutorial onDone={toStudy} />
          ) : isAnnotator || step === "work" ? (
            <Loaded query={progress} what="your progress">{(own) => <AnnotatorStudy study={found} progress={own} />}</Loaded>
          ) : (
            <OwnerStudy study={found} />
          )}
        </>
      )}
    </Loaded>
  );
}
