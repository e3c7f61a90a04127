import type { FormHTMLAttributes } from "react";

type Props = Omit<FormHTMLAttributes<HTMLFormElement>, "onSubmit"> & { onSubmit: () => void };

/** A form whose content is sent by a script; the browser never leaves the page for it. */
export function Form({ onSubmit, ...rest }: Props) {
  return <form onSubmit={(event) => { event.preventDefault(); onSubmit(); }} {...rest} />;
}
