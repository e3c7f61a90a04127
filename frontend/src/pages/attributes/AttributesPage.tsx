import { PageHead } from "../../components/PageHead";

/** Attributes. */
export function AttributesPage() {
  return <PageHead title="Attributes" />;
}
