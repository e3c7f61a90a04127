import type { ReactNode } from "react";

type Props = { title: string; children?: ReactNode; aside?: ReactNode };

/** The heading of a page, one sentence on what it is for, and what can be done with the whole page. */
export function PageHead({ title, children, aside }: Props) {
  return (
    <div className="page-head">
      <div>
        <h1>{title}</h1>
        {children && <p className="lead">{children}</p>}
      </div>
      {aside && <div className="page-aside">{aside}</div>}
    </div>
  );
}
