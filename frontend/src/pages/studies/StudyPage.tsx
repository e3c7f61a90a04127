import { PageHead } from "../../components/PageHead";

/** Study. */
export function StudyPage() {
  return <PageHead title="Study" />;
}
