import { serverRoot, type Schemas } from "../../../api/client";

type Props = { world: Schemas["TutorialWorld"]; similarities: number[] | null; threshold: number | null };

/** The squares: right ones left, wrong ones right; those that the words mean have a ring. */
export function PlantedImages({ world, similarities, threshold }: Props) {
  const fits = (number: number) => threshold !== null && similarities !== null && (similarities[number] ?? 0) >= threshold;
  const side = (isWrong: boolean) => {
    const numbers = world.is_wrong.flatMap((wrong, number) => (wrong === isWrong ? [number] : []));
    const title = isWrong ? "The AI was wrong" : "The AI was right";
    return (
      <section className={`planted ${isWrong ? "is-wrong" : "is-right"}`} aria-label={`${title}, ${numbers.length} images`}>
        <h2>{isWrong ? "✗" : "✓"} {title} <span className="quiet">{numbers.length}</span></h2>
        <ul>
          {numbers.map((number) => (
            <li key={number} className={fits(number) ? "fits" : undefined}>
              <img src={`${serverRoot}/api/tutorial/images/${number}`} alt={`${world.words[number]}${fits(number) ? ", fits the words" : ""}`} width={64} height={64} />
            </li>
          ))}
        </ul>
      </section>
    );
  };
  return <div className="planted-columns">{side(false)}{side(true)}</div>;
}
