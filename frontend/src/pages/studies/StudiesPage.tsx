import { PageHead } from "../../components/PageHead";

/** Studies. */
export function StudiesPage() {
  return <PageHead title="Studies" />;
}
