import { PageHead } from "../../components/PageHead";

/** Slice. */
export function SlicePage() {
  return <PageHead title="Slice" />;
}
