import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { api, unwrap, type Schemas } from "../../api/client";
import { useSession } from "../../app/session";
import { counted, percent, range, score, unbroken } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { PageHead } from "../../components/PageHead";
import "./classes.css";
import { ClassWorkbench } from "./ClassWorkbench";

type ClassRow = Schemas["ClassRow"];
const MANY = 12;

/** The address of a class; any character may be in its name. */
export function classAddress(title: string): string {
  return `/classes/${encodeURIComponent(encodeURIComponent(title))}`;
}

/** The class that an address means: names may have been escaped once, twice or not at all. */
export function classOf(part: string | undefined, titles: string[]): string | undefined {
  let name = part;
  for (let round = 0; round < 3 && name !== undefined; round += 1) {
    if (titles.includes(name)) return name;
    try {
      name = decodeURIComponent(name);
    } catch {
      return undefined;
    }
  }
  return name !== undefined && titles.includes(name) ? name : undefined;
}

/** All classes beside the work area of one. */
export function ClassPage() {
  const { title: part } = useParams<{ title?: string }>();
  const list = useQuery({
    queryKey: ["classes"],
    queryFn: () => unwrap(api.GET("/api/classes")),
    refetchInterval: (state) => (state.state.data && !state.state.data.is_ranked ? 1500 : false),
  });
  return (
    <>
      <PageHead title="Classes">Look at what the AI gets wrong, say what those samples have in common, and see at once whether you are right.</PageHead>
      <Loaded query={list} what="the classes">
        {({ classes, can_compare, is_ranked }) => {
          const titles = classes.map((one) => one.title);
          const chosen = part === undefined ? titles[0] : classOf(part, titles);
          return (
            <div className="class-page">
              <ClassChoice classes={classes} chosen={chosen} isRanked={is_ranked} />
              <div>
                <Findings said={classes.find((one) => one.title === chosen)?.findings ?? []} />
                {!can_compare && <CannotCompare />}
                {chosen === undefined ? <p className="note warn">{titles.length ? "There is no such class. Choose one from the list." : "There are no classes with labelled samples."}</p> : <ClassWorkbench key={chosen} title={chosen} />}
              </div>
            </div>
          );
        }}
      </Loaded>
    </>
  );
}

/** What the newest run confirmed of the class as a whole. */
function Findings({ said }: { said: string[] }) {
  if (said.length === 0) return null;
  return (
    <section className="note warn class-as-whole" aria-label="The class as a whole">
      {said.map((one) => <p key={one}>{unbroken(one)}.</p>)}
    </section>
  );
}

/** What to ask instead where words cannot be compared with images. */
function CannotCompare() {
  const { has_images: hasImages } = useSession();
  const ask = <>Ask for values of columns, as in <code>colour = red and size = small</code>, or for words of captions.</>;
  if (!hasImages) return <p className="note">These samples have no images. {ask}</p>;
  return <p className="note warn">Words cannot be compared with images here: the embedder has no text side. {ask} Or run <code>weakspot lab align</code>.</p>;
}

type ChoiceProps = { classes: ClassRow[]; chosen: string | undefined; isRanked: boolean };

/** The list of classes, most promising first; a menu on narrow screens. */
function ClassChoice({ classes, chosen, isRanked }: ChoiceProps) {
  const [wanted, setWanted] = useState("");
  const [, go] = useLocation();
  const id = useId();
  const found = classes.filter((one) => one.title.toLowerCase().includes(wanted.trim().toLowerCase()));
  const groups = [
    { title: "Most promising", rows: found.filter((one) => one.is_promising) },
    { title: "Others", rows: found.filter((one) => !one.is_promising) },
  ];
  return (
    <div className="class-choice">
      <label className="field class-menu">
        <span>Class</span>
        <select value={chosen ?? ""} onChange={(event) => go(classAddress(event.target.value))}>
          {chosen === undefined && <option value="">–</option>}
          {classes.map((one) => <option key={one.title} value={one.title}>{one.title} ({percent(one.accuracy.value)} right)</option>)}
        </select>
      </label>
      <nav className="class-list card" aria-label="Classes">
        {classes.length > MANY && (
          <label className="field" htmlFor={id}>
            <span>Find a class</span>
            <input id={id} type="search" value={wanted} onChange={(event) => setWanted(event.target.value)} />
          </label>
        )}
        {groups.filter((group) => group.rows.length > 0).map((group) => (
          <div key={group.title}>
            <p className="quiet group-title">{group.title}</p>
            <ul>{group.rows.map((one) => <ClassItem key={one.title} row={one} isChosen={one.title === chosen} />)}</ul>
          </div>
        ))}
        {found.length === 0 && <p className="quiet">No class has this name.</p>}
        {!isRanked && <p role="status" className="quiet">Looking for the most promising ones …</p>}
        <p className="quiet small">Promising: the AI is right on 20 to 80 %, and some word tells right from wrong.</p>
      </nav>
    </div>
  );
}

/** One class of the list. */
function ClassItem({ row, isChosen }: { row: ClassRow; isChosen: boolean }) {
  const tip = `${counted(row.n_failed)} wrong of ${counted(row.n_samples)}; right ${percent(row.accuracy.value)}, interval ${range(row.accuracy.interval)}; best suggested word scores ${score(row.best_score)}`;
  return (
    <li>
      <Link href={classAddress(row.title)} title={tip} aria-current={isChosen ? "true" : undefined}>
        <span className="class-name">{row.title}</span>
        <span className="quiet">{percent(row.accuracy.value)} right of {counted(row.n_samples)}</span>
      </Link>
    </li>
  );
}
