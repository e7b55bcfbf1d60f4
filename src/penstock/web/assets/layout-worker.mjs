// Where boxes and edges go: takes a while for hundreds of them, so it is done beside the page.
import { Graph, layout } from "./vendor/dagre.mjs";

const WIDTH = 178, HEIGHT = 54, HEAD = 12;

const MANY = 40, COLUMNS = 2, GAP = 10, ACROSS = 4;

addEventListener("message", ({ data: { key, units, edges } }) => {
  postMessage({ key, ...(units.length > MANY ? packed(units, edges) : layered(units, edges)) });
});

/** Many fragments: node by node, in columns; streams are drawn only where somebody asks. */
function packed(units, edges) {
  const byNode = new Map();
  for (const unit of units) byNode.set(unit.node, [...(byNode.get(unit.node) || []), unit.name]);
  const boxes = {}, nodes = [], heights = Array(ACROSS).fill(GAP);
  const wide = COLUMNS * (WIDTH + GAP) + GAP;
  for (const [name, members] of [...byNode].sort(([a], [b]) => a.localeCompare(b))) {
    const column = heights.indexOf(Math.min(...heights));
    const x = GAP + column * (wide + 2 * GAP), y = heights[column];
    members.forEach((member, at) => {
      boxes[member] = { x: x + GAP + (at % COLUMNS) * (WIDTH + GAP), y: y + 20 + Math.floor(at / COLUMNS) * (HEIGHT + GAP), width: WIDTH, height: HEIGHT };
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

function layered(units, edges) {
  const graph = new Graph({ compound: true, multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 34, ranksep: 64, edgesep: 10, marginx: 14, marginy: 22, ranker: "tight-tree" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of new Set(units.map((unit) => unit.node))) graph.setNode(`node ${node}`, { label: node });
  for (const unit of units) {
    graph.setNode(unit.name, { width: WIDTH, height: HEIGHT });
    graph.setParent(unit.name, `node ${unit.node}`);
  }
  edges.forEach((edge, at) => graph.setEdge(edge.from, edge.to, { width: 64, height: 14, labelpos: "c" }, String(at)));
  layout(graph);
  const boxes = {}, nodes = [];
  for (const name of graph.nodes()) {
    const { x, y, width, height, label } = graph.node(name);
    const box = { x: x - width / 2, y: y - height / 2, width, height };
    if (label === undefined) boxes[name] = box;
    else nodes.push({ name: label, ...box, y: box.y - HEAD, height: box.height + HEAD });
  }
  const paths = edges.map((edge, at) => {
    const { points, x, y } = graph.edge(edge.from, edge.to, String(at));
    return { points, x, y };
  });
  const { width, height } = graph.graph();
  return { boxes, nodes, paths, width, height, many: false };
}
