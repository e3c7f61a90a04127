import { PageHead } from "../../components/PageHead";

/** Slices. */
export function SlicesPage() {
  return <PageHead title="Slices" />;
}
