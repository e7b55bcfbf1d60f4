// Where boxes and edges go: takes a while for hundreds of them, so it is done beside the page.
import { Graph, layout } from "./vendor/dagre.mjs";

const WIDTH = 178, HEIGHT = 54;

addEventListener("message", ({ data: { key, units, edges } }) => {
  const graph = new Graph({ compound: true, multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 64, edgesep: 10, marginx: 14, marginy: 14, ranker: "tight-tree" });
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
    else nodes.push({ name: label, ...box });
  }
  const paths = edges.map((edge, at) => {
    const { points, x, y } = graph.edge(edge.from, edge.to, String(at));
    return { points, x, y };
  });
  const { width, height } = graph.graph();
  postMessage({ key, boxes, nodes, paths, width, height });
});
