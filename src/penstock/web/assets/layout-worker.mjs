// Where boxes and edges go: takes a while for hundreds of them, so it is done beside the page.
import { Graph, layout } from "./vendor/dagre.mjs";

const WIDTH = 178, HEIGHT = 70, HEAD = 24, MARGIN = 24, LANES = 16, APART = 12;
const MANY = 40, COLUMNS = 2, GAP = 10, ACROSS = 4;

addEventListener("message", ({ data: { key, units, edges } }) => {
  postMessage({ key, ...(units.length > MANY ? packed(units, edges) : layered(units, edges)) });
});

/** Many fragments: node by node, in columns; streams are drawn only where somebody asks. */
function packed(units, edges) {
  const byNode = new Map();
  for (const unit of units) byNode.set(unit.node, [...(byNode.get(unit.node) || []), unit.name]);
  const boxes = {},
    nodes = [],
    heights = Array(ACROSS).fill(GAP);
  const wide = COLUMNS * (WIDTH + GAP) + GAP;
  for (const [name, members] of [...byNode].sort(([a], [b]) => a.localeCompare(b))) {
    const column = heights.indexOf(Math.min(...heights));
    const x = GAP + column * (wide + 2 * GAP),
      y = heights[column];
    members.forEach((member, at) => {
      boxes[member] = {
        x: x + GAP + (at % COLUMNS) * (WIDTH + GAP),
        y: y + 20 + Math.floor(at / COLUMNS) * (HEIGHT + GAP),
        width: WIDTH,
        height: HEIGHT,
      };
    });
    const height = 20 + Math.ceil(members.length / COLUMNS) * (HEIGHT + GAP);
    nodes.push({ name, x, y, width: wide, height });
    heights[column] += height + 2 * GAP;
  }
  const paths = edges.map(({ from, to }) => {
    const [a, b] = [boxes[from], boxes[to]];
    return { points: [], x: (a.x + a.width + b.x) / 2, y: (a.y + b.y + HEIGHT) / 2 };
  });
  return { boxes, nodes, paths, width: ACROSS * (wide + 2 * GAP), height: Math.max(...heights), many: true };
}

/** A lane for each node, from left to right as rows flow: boxes of nodes never overlap. */
function layered(units, edges) {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 20, ranksep: 104, marginx: MARGIN, ranker: "tight-tree" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const unit of units) graph.setNode(unit.name, { width: WIDTH, height: HEIGHT });
  edges.forEach((edge, at) => graph.setEdge(edge.from, edge.to, {}, String(at)));
  layout(graph);
  const width = graph.graph().width + MARGIN,
    boxes = {},
    nodes = [];
  let top = MARGIN;
  for (const name of [...new Set(units.map((unit) => unit.node))].sort()) {
    const members = units.filter((unit) => unit.node === name).map((unit) => unit.name);
    const columns = new Map();
    for (const member of members) {
      const { x } = graph.node(member);
      columns.set(x, [...(columns.get(x) || []), member]);
    }
    const tallest = Math.max(...[...columns.values()].map((column) => column.length));
    for (const [x, column] of columns) {
      column.sort((a, b) => graph.node(a).y - graph.node(b).y);
      column.forEach((member, at) => {
        boxes[member] = { x: x - WIDTH / 2, y: top + HEAD + at * (HEIGHT + APART), width: WIDTH, height: HEIGHT };
      });
    }
    const height = HEAD + tallest * (HEIGHT + APART);
    nodes.push({ name, x: MARGIN / 2, y: top, width: width - MARGIN, height });
    top += height + LANES;
  }
  const paths = edges.map(({ from, to }) => {
    const [a, b] = [boxes[from], boxes[to]];
    // Beside where it arrives: where several begin at one box their words would cover each other.
    const part = 0.68;
    return { points: [], x: b.x - 10, y: a.y + part * part * (3 - 2 * part) * (b.y - a.y) + HEIGHT / 2 };
  });
  return { boxes, nodes, paths, width, height: top, many: false };
}
