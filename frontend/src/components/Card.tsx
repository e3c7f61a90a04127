import { useId, type ReactNode } from "react";

type Props = { title?: string; children: ReactNode; className?: string; aside?: ReactNode };

/** A part of a page with its own heading. */
export function Card({ title, children, className = "", aside }: Props) {
  const id = useId();
  return (
    <section className={`card ${className}`} {...(title ? { "aria-labelledby": id } : {})}>
      {Boolean(title ?? aside) && (
        <div className="card-head">
          {title && <h2 id={id}>{title}</h2>}
          {aside}
        </div>
      )}
      {children}
    </section>
  );
}
