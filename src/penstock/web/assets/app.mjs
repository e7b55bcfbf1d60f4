// The page: where one is, what is open, and whether the controller answers.
import { html, render, useEffect, useState } from "./lib.mjs";
import { follow, useStore } from "./store.mjs";
import { BalanceDialog, DropDialog, MoveDialog, SubmitDialog } from "./actions.mjs";
import { Overview } from "./overview.mjs";
import { GraphPage } from "./graph.mjs";
import { Moves } from "./moves.mjs";
import { ResiliencePage } from "./resilience.mjs";
import { Queries } from "./queries.mjs";
import { Nodes } from "./nodes.mjs";

const PAGES = [
  ["overview", "Overview", Overview],
  ["graph", "Graph", GraphPage],
  ["moves", "Moves", Moves],
  ["resilience", "Resilience", ResiliencePage],
  ["queries", "Queries", Queries],
  ["nodes", "Nodes", Nodes],
];
const LINKS = {
  connecting: "connecting…",
  live: "live",
  lost: "the controller does not answer; its queries go on. Trying again…",
  out: "not logged in any more. Ask for a new link: penstock dashboard",
};

function place() {
  const [page, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return { page: PAGES.some(([name]) => name === page) ? page : "overview", rest };
}

function usePlace() {
  const [at, setAt] = useState(place);
  useEffect(() => {
    const look = () => setAt(place());
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  return at;
}

function useTheme() {
  const [theme, setTheme] = useState(localStorage.getItem("theme") || "auto");
  useEffect(() => {
    localStorage.setItem("theme", theme);
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event("themechange"));
  }, [theme]);
  return [theme, setTheme];
}

function App() {
  const { view, link } = useStore();
  const { page, rest } = usePlace();
  const [theme, setTheme] = useTheme();
  const [open, setOpen] = useState(null);
  const close = () => setOpen(null);
  const act = {
    move: (fragment, node) => setOpen({ kind: "move", fragment, node }),
    drop: (name) => setOpen({ kind: "drop", name }),
    submit: () => setOpen({ kind: "submit" }),
    balance: () => setOpen({ kind: "balance" }),
  };
  const Page = PAGES.find(([name]) => name === page)[2];
  useEffect(() => {
    document.title = `${PAGES.find(([name]) => name === page)[1]} · Penstock`;
  }, [page]);
  const wrong = view ? view.troubles.length : 0;
  return html`
    <a class="skip" href="#main" onClick=${(e) => {
      e.preventDefault();
      document.getElementById("main").focus();
    }}>Skip to the page</a>
    <header class="top">
      <a class="brand" href="#/overview"><img src="/assets/icon.svg" alt="" width="22" height="22" />Penstock</a>
      <nav aria-label="Pages">${PAGES.map(
        ([name, title]) => html`
        <a key=${name} href=${`#/${name}`} aria-current=${name === page ? "page" : null}>
          ${title}${name === "overview" && wrong ? html`<span class="badge">${wrong}</span>` : null}</a>`,
      )}
      </nav>
      <span class=${`link ${link}`} role="status">
        ${link === "live" ? "live" : link === "connecting" ? "connecting…" : "offline"}</span>
      <button id="submit" class="primary" disabled=${!view} onClick=${act.submit}>Submit…</button>
      <select id="theme" aria-label="Colours" value=${theme} onChange=${(e) => setTheme(e.target.value)}>
        <option value="auto">auto</option><option value="light">light</option>
          <option value="dark">dark</option></select>
    </header>
    ${link === "lost" || link === "out" ? html`<p class="banner" role="alert">${LINKS[link]}</p>` : null}
    <main id="main" tabindex="-1">
      ${view ? html`<${Page} key=${page} rest=${rest} act=${act} />` : html`<p class="empty">
      ${LINKS[link]}</p>`}</main>
    ${open?.kind === "move" ? html`<${MoveDialog} ...${open} onClose=${close} />` : null}
    ${open?.kind === "drop" ? html`<${DropDialog} ...${open} onClose=${close} />` : null}
    ${open?.kind === "balance" ? html`<${BalanceDialog} onClose=${close} />` : null}
    ${open?.kind === "submit" ? html`<${SubmitDialog} onClose=${close} />` : null}`;
}

follow();
render(html`<${App} />`, document.getElementById("app"));
