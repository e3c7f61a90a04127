import type { ComponentType } from "react";
import type { Schemas } from "../api/client";
import { ActivityPage } from "../pages/activity/ActivityPage";
import { ModelsPage } from "../pages/compare/ModelsPage";
import { AttributesPage } from "../pages/attributes/AttributesPage";
import { ClassPage } from "../pages/classes/ClassPage";
import { ImagesPage } from "../pages/images/ImagesPage";
import { MapPage } from "../pages/map/MapPage";
import { MarksPage } from "../pages/marks/MarksPage";
import { OverviewPage } from "../pages/overview/OverviewPage";
import { RepairPage } from "../pages/repair/RepairPage";
import { SearchPage } from "../pages/search/SearchPage";
import { PairPage } from "../pages/slices/PairPage";
import { SlicePage } from "../pages/slices/SlicePage";
import { SlicesPage } from "../pages/slices/SlicesPage";
import { StudiesPage } from "../pages/studies/StudiesPage";
import { StudyPage } from "../pages/studies/StudyPage";

type Role = Schemas["PersonView"]["role"];

/** One page of the app. Pages without a title are not in the menu. */
export type Page = {
  path: string;
  title: string;
  routes: string[];
  roles: Role[];
  component: ComponentType;
  matches: (location: string) => boolean;
};

const READERS: Role[] = ["owner", "viewer"];
const EVERYONE: Role[] = ["owner", "viewer", "annotator"];

function page(title: string, path: string, component: ComponentType, roles: Role[] = READERS, routes: string[] = [path]): Page {
  const matches = (location: string) => (path === "/" ? location === "/" : location.startsWith(path));
  return { title, path, component, roles, routes, matches };
}

export const PAGES: Page[] = [
  page("Overview", "/", OverviewPage),
  page("Images", "/images", ImagesPage),
  page("Classes", "/classes", ClassPage, READERS, ["/classes", "/classes/:title"]),
  page("Slices", "/slices", SlicesPage, READERS, ["/slices"]),
  page("", "/slices/", SlicePage, READERS, ["/slices/:id"]),
  page("", "/slices/", PairPage, READERS, ["/slices/:id/beside/:other"]),
  page("Attributes", "/attributes", AttributesPage),
  page("Map", "/map", MapPage),
  page("Marks", "/marks", MarksPage),
  page("Repair", "/repair", RepairPage),
  page("Two classifiers", "/compare", ModelsPage),
  page("Generated images", "/search", SearchPage),
  page("Studies", "/studies", StudiesPage, EVERYONE, ["/studies"]),
  page("", "/studies/", StudyPage, EVERYONE, ["/studies/:id", "/studies/:id/:step"]),
  page("Activity", "/activity", ActivityPage),
];
