import { PageHead } from "../../components/PageHead";

/** Map. */
export function MapPage() {
  return <PageHead title="Map" />;
}
