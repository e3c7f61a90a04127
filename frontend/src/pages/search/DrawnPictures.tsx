import { drawnAddress } from "./drawings";

type Drawn = { digest: string; answer: string; fails: boolean };

/** Generated pictures in a row, marked as such; failures have a dashed orange frame and say so. */
export function DrawnPictures({ pictures, what }: { pictures: Drawn[]; what: string }) {
  if (pictures.length === 0) return null;
  return (
    <ul className="drawn" aria-label={`Generated pictures, ${what}`}>
      {pictures.map((picture, place) => (
        <li key={`${picture.digest}${place}`} className={picture.fails ? "is-wrong" : ""}>
          <img src={drawnAddress(picture.digest)} alt={`generated picture ${place + 1}, taken for ${picture.answer}`} width={96} height={96} loading="lazy" />
          <span aria-hidden="true">{picture.fails ? "✗" : "✓"} {picture.answer}</span>
        </li>
      ))}
    </ul>
  );
}
