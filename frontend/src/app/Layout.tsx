import { Link, Route, Switch, useLocation } from "wouter";
import { useEffect, useRef } from "react";
import { PAGES } from "./pages";
import { SignOutButton, useSession } from "./session";
import { ThemeSwitch } from "./ThemeSwitch";
import { useViewerAddress, VIEWER } from "./hashLocation";
import { Viewer } from "../viewer/Viewer";
import { MarkedContext, useMarkedRows } from "../marks/markedRows";
import { useLive } from "./live";

/** The frame around every page: a way past the menu, the menu, the page. */
export function Layout() {
  const session = useSession();
  const [location] = useLocation();
  const image = useViewerAddress();
  const main = useRef<HTMLElement>(null);
  const isReader = session.person.role !== "annotator";
  useLive(isReader);
  const marked = useMarkedRows(isReader);
  const pages = PAGES.filter((page) => page.roles.includes(session.person.role));
  const current = pages.find((page) => page.matches(location)) ?? pages[0];
  useEffect(() => {
    main.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [location]);
  return (
    <MarkedContext.Provider value={marked}>
      <div className="frame">
        <a className="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
          Skip to the page
        </a>
        <header className="menu">
          <p className="brand"><img src="./icon.svg" alt="" width="26" height="26" /> weakspot</p>
          <p className="project" title={session.project}>{session.project}</p>
          <nav aria-label="Pages">
            <ul>
              {pages.filter((page) => page.title).map((page) => (
                <li key={page.path}>
                  <Link href={page.path} aria-current={page === current ? "page" : undefined}>{page.title}</Link>
                </li>
              ))}
            </ul>
          </nav>
          <div className="menu-foot">
            <p className="quiet">{session.person.name === session.person.role ? session.person.role : `${session.person.name}, ${session.person.role}`} <SignOutButton /></p>
            <ThemeSwitch />
          </div>
        </header>
        <main id="main" ref={main} tabIndex={-1}>
          <Switch>
            {pages.map((page) => page.routes.map((route) => <Route key={route} path={route} component={page.component} />))}
            <Route path={`${VIEWER}*?`}>
              <p className="quiet">An image is shown above this page.</p>
            </Route>
            <Route>
              <h1>There is no such page</h1>
              <p><Link href="/">To the overview</Link></p>
            </Route>
          </Switch>
        </main>
        {image && <Viewer id={image.id} query={image.query} />}
      </div>
    </MarkedContext.Provider>
  );
}
