import { PageHead } from "../../components/PageHead";

/** Search. */
export function SearchPage() {
  return <PageHead title="Search" />;
}
