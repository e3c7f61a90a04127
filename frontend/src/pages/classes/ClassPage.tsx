import { PageHead } from "../../components/PageHead";

/** Classes. */
export function ClassPage() {
  return <PageHead title="Classes" />;
}
