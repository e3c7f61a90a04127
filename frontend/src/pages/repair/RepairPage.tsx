import { PageHead } from "../../components/PageHead";

/** Repair. */
export function RepairPage() {
  return <PageHead title="Repair" />;
}
