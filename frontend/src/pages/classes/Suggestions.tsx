import type { Schemas } from "../../api/client";
import { score } from "../../components/figures";

type Props = { found: Schemas["Suggestions"]; onUse: (words: string) => void };

/** Words to start from, each with its score. */
export function Suggestions({ found, onUse }: Props) {
  if (found.words.length === 0) return null;
  return (
    <div className="suggestions">
      <p className="quiet" id="suggestion-words">{found.is_complete ? "Or try:" : "Or try (better ones are on their way):"}</p>
      <ul aria-labelledby="suggestion-words">
        {found.words.map((one) => (
          <li key={one.words}>
            <button type="button" className="chip" onClick={() => onUse(one.words)}>{one.words} <span className="quiet">{score(one.score)}</span></button>
          </li>
        ))}
      </ul>
    </div>
  );
}
