"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const figures = [...document.querySelectorAll("figure")];
const shown = () => figures.filter((other) => !other.hidden);
let figure = null;

// -- colours

function colour(share) {
  const stops = data.colours;
  const place = Math.sqrt(Math.min(Math.max(share, 0), 1)) * (stops.length - 1);
  const i = Math.min(Math.floor(place), stops.length - 2);
  const mixed = stops[i].map((a, k) => Math.round(a + (stops[i + 1][k] - a) * (place - i)));
  return `rgb(${mixed.join(",")})`;
}

function paint(name) {
  for (const other of shown()) {
    const known = data.graphs[other.dataset.graph];
    const measure = known.measures.find((m) => m.name === name);
    for (const g of other.querySelectorAll(".node")) {
      const value = measure ? known.nodes[g.dataset.node].values[name] : undefined;
      const rect = g.querySelector("rect");
      rect.style.fill = value === undefined ? "" : colour(value / (measure.largest || 1));
    }
    if (other === figure) {
      byId("legend").hidden = !measure;
      byId("legend").querySelector("span").textContent = measure ? `0 to ${measure.shown}` : "";
    }
  }
}

// -- the part that is seen

function look(svg, box) {
  svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
}

function fit(svg, whole = false) {
  const width = Number(svg.dataset.width), height = Number(svg.dataset.height);
  const room = svg.parentElement.getBoundingClientRect();
  // Letters are never larger than they are written, nor, unless all is asked for, so small that
  // nobody can read them.
  const most = whole ? Infinity : 2.2;
  const scale = Math.min(Math.max(width / room.width, height / room.height, 1), most);
  const shown = { width: scale * room.width, height: scale * room.height };
  const y = shown.height > height ? (height - shown.height) / 2 : 0;
  look(svg, { x: (width - shown.width) / 2, y, ...shown });
}

function centre(svg, rect) {
  const box = svg.viewBox.baseVal;
  const x = Number(rect.getAttribute("x")) + Number(rect.getAttribute("width")) / 2;
  const y = Number(rect.getAttribute("y")) + Number(rect.getAttribute("height")) / 2;
  look(svg, { x: x - box.width / 2, y: y - box.height / 2, width: box.width, height: box.height });
}

function movable(svg) {
  let from = null;
  const scale = () => svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
  svg.addEventListener("pointerdown", (event) => {
    from = { x: event.clientX, y: event.clientY };
  });
  svg.addEventListener("pointermove", (event) => {
    if (!from || !event.buttons) return;
    const box = svg.viewBox.baseVal, k = scale();
    svg.classList.add("moving");
    look(svg, {
      x: box.x - (event.clientX - from.x) * k, y: box.y - (event.clientY - from.y) * k,
      width: box.width, height: box.height,
    });
    from = { x: event.clientX, y: event.clientY };
  });
  window.addEventListener("pointerup", () => {
    from = null;
    svg.classList.remove("moving");
  });
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = svg.viewBox.baseVal, room = svg.getBoundingClientRect();
    const factor = Math.exp(event.deltaY * 0.0015);
    const across = (event.clientX - room.left) / room.width;
    const down = (event.clientY - room.top) / room.height;
    look(svg, {
      x: box.x + box.width * across * (1 - factor), y: box.y + box.height * down * (1 - factor),
      width: box.width * factor, height: box.height * factor,
    });
  }, { passive: false });
}

// -- nodes

function element(name, text) {
  const found = document.createElement(name);
  found.textContent = text;
  return found;
}

function select(where, id) {
  const node = data.graphs[where.dataset.graph].nodes[id];
  for (const other of shown()) {
    const nodes = data.graphs[other.dataset.graph].nodes;
    for (const g of other.querySelectorAll(".node")) {
      const same = other === where && g.dataset.node === id;
      const kin = node.kin !== "" && nodes[g.dataset.node].kin === node.kin;
      g.classList.toggle("selected", same);
      g.classList.toggle("kin", kin && !same);
    }
    for (const edge of other.querySelectorAll(".edge")) {
      const near = edge.dataset.source === id || edge.dataset.target === id;
      edge.classList.toggle("near", other === where && near);
    }
  }
  const list = document.createElement("dl");
  for (const [what, text] of node.details) {
    const shown = element("dd", text);
    shown.classList.toggle("code", text.includes("\n"));
    list.append(element("dt", what), shown);
  }
  const parts = [element("h2", node.label), list];
  if (node.opens) {
    const button = element("button", `Open ${node.opens}`);
    button.addEventListener("click", () => show(node.opens));
    parts.push(button);
  }
  byId("details").replaceChildren(...parts);
}

function reveal(title, id) {
  show(title);
  const g = [...figure.querySelectorAll(".node")].find((n) => n.dataset.node === id);
  centre(figure.querySelector("svg"), g.querySelector("rect"));
  select(figure, id);
  figure.scrollIntoView({ block: "nearest" });
}

function has(node, wanted) {
  const all = [node.label, ...node.details.map((pair) => pair[1])].join("\n").toLowerCase();
  return all.includes(wanted);
}

// The graphs and nodes with the text that is looked for, those inside others too.
let matches = [], next = 0;

function find(text) {
  const wanted = text.toLowerCase();
  for (const other of shown()) {
    const nodes = data.graphs[other.dataset.graph].nodes;
    for (const g of other.querySelectorAll(".node")) {
      g.classList.toggle("faded", wanted !== "" && !has(nodes[g.dataset.node], wanted));
    }
  }
  matches = wanted === "" ? [] : Object.entries(data.graphs).flatMap(([title, graph]) =>
    Object.entries(graph.nodes).filter(([, node]) => has(node, wanted)).map(([id]) => [title, id]));
  byId("found").textContent = wanted === "" ? "" : `${matches.length} in all graphs`;
}

function goOn() {
  if (!matches.length) return;
  const place = next % matches.length;
  reveal(...matches[place]);
  next = place + 1;
  byId("found").textContent = `${next} of ${matches.length} in all graphs`;
}

function above(title) {
  const holds = ([, graph]) => Object.values(graph.nodes).some((node) => node.opens === title);
  const found = Object.entries(data.graphs).find(holds);
  return found ? found[0] : "";
}

// -- graphs

// What nodes are coloured by: time, where it was taken, unless something else is chosen.
let measured = "time";

function show(title) {
  const beside = byId("beside").value;
  for (const other of figures) {
    other.hidden = other.dataset.graph !== title && other.dataset.graph !== beside;
  }
  figure = figures.find((other) => other.dataset.graph === title);
  byId("graph").value = title;
  byId("up").disabled = above(title) === "";
  const measures = data.graphs[title].measures;
  byId("measure").replaceChildren(
    ...measures.map((m) => new Option(m.name, m.name)), new Option("nothing", ""),
  );
  byId("measure").value = measures.some((m) => m.name === measured) ? measured : "";
  paint(byId("measure").value);
  for (const other of shown()) fit(other.querySelector("svg"));
  find(byId("find").value);
}

byId("graph").replaceChildren(...Object.keys(data.graphs).map((name) => new Option(name, name)));
byId("beside").replaceChildren(
  new Option("nothing", ""), ...Object.keys(data.graphs).map((name) => new Option(name, name)),
);
byId("beside").value = data.beside;
byId("graph").addEventListener("change", (event) => show(event.target.value));
byId("beside").addEventListener("change", () => show(figure.dataset.graph));
byId("measure").addEventListener("change", (event) => {
  measured = event.target.value;
  paint(measured);
});
byId("find").addEventListener("input", (event) => {
  next = 0;
  find(event.target.value);
});
byId("find").addEventListener("keydown", (event) => {
  if (event.key === "Enter") goOn();
});
byId("up").addEventListener("click", () => {
  const title = above(figure.dataset.graph);
  if (title) show(title);
});
byId("fit").addEventListener("click", () => {
  for (const other of shown()) fit(other.querySelector("svg"), true);
});
byId("legend").querySelector("i").style.background =
  `linear-gradient(to right, ${[0, 0.0625, 0.25, 0.5625, 1].map(colour).join(",")})`;
for (const other of figures) {
  movable(other.querySelector("svg"));
  for (const g of other.querySelectorAll(".node")) {
    g.addEventListener("click", () => select(other, g.dataset.node));
    g.addEventListener("keydown", (event) => {
      if (event.key === "Enter") select(other, g.dataset.node);
    });
    g.addEventListener("dblclick", () => {
      const opens = data.graphs[other.dataset.graph].nodes[g.dataset.node].opens;
      if (opens) show(opens);
    });
  }
}
for (const row of document.querySelectorAll("tr[data-of]")) {
  const go = () => reveal(row.dataset.in, row.dataset.of);
  row.addEventListener("click", go);
  row.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go();
  });
}
if (figures.length) show(figures[0].dataset.graph);
