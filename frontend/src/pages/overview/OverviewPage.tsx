import { PageHead } from "../../components/PageHead";

/** Overview. */
export function OverviewPage() {
  return <PageHead title="Overview" />;
}
