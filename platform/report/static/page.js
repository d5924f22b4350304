"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
  const charts = new Set();

  // Times: how long ago, as of when the page is looked at.
  const ago = (then) => {
    const seconds = Math.max(0, (Date.now() - then) / 1000);
    for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
      if (seconds >= length * (unit === "d" ? 2 : 1)) return `${Math.floor(seconds / length)} ${unit} ago`;
    }
    return "just now";
  };
  const tick = () => {
    for (const time of all("time[data-ago]")) {
      time.title = time.title || `${time.textContent} UTC`;
      time.textContent = ago(Date.parse(time.dateTime));
    }
    document.getElementById("old").hidden = Date.now() - Date.parse(figures.made_at) < 7200000;
  };
  tick();
  setInterval(tick, 30000);

  // Charts.
  const seconds = (key) => Date.parse(key.length > 10 ? `${key}:00:00Z` : `${key}T00:00:00Z`) / 1000;
  const written = (value) => (value === null || value === undefined ? "–" : whole.format(value));
  const dated = (key) => {
    const date = new Date(seconds(key) * 1000);
    const day = date.toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
    return key.length > 10 ? `${day}, ${key.slice(11, 13)}:00` : day;
  };
  const axis = (more) => ({
    stroke: colour("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    ...more,
  });
  const DAYS = [1, 2, 7, 14, 28, 56, 91, 182, 364].map((days) => days * 86400);
  const HOURS = [1, 2, 3, 6, 12, 24].map((hours) => hours * 3600);
  const marked = (time) => {
    const date = new Date(time * 1000);
    if (time % 86400) return `${String(date.getUTCHours()).padStart(2, "0")}:00`;
    return date.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  };
  const draw = (place, keys, lines, height, bars) => {
    for (const chart of charts) {
      if (chart.place === place) {
        chart.plot.destroy();
        charts.delete(chart);
      }
    }
    const series = lines.map((line) => ({
      label: line.label,
      stroke: colour(line.colour),
      width: line.dashed ? 1.2 : 1.8,
      dash: line.dashed ? [4, 4] : undefined,
      fill: bars ? colour(line.colour) : line.dashed ? undefined : colour("--bar"),
      paths: bars ? uPlot.paths.bars({ size: [0.7, 24] }) : undefined,
      points: { show: !bars && keys.length < 3 },
      value: (_, value) => written(value),
    }));
    const plot = new uPlot(
      {
        width: place.clientWidth,
        height,
        padding: [8, 22, 0, 0],
        tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "UTC"),
        cursor: { y: false, points: { size: 7 } },
        scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.06)] } },
        axes: [
          axis({ grid: { show: false }, size: 28, space: 56, incrs: keys[0].length > 10 && keys.length <= 48 ? HOURS : DAYS, values: (_, splits) => splits.map(marked) }),
          axis({ size: 44, space: 36, values: (_, splits) => splits.map((value) => (value >= 10000 ? `${whole.format(value / 1000)}k` : whole.format(value))) }),
        ],
        series: [{ label: keys[0].length > 10 ? "Hour" : "Day", value: (_, time, __, index) => (index === null || time === null ? "" : dated(keys[index])) }, ...series],
      },
      [keys.map(seconds), ...lines.map((line) => line.values)],
      place,
    );
    charts.add({ place, plot });
  };

  // The numbers of a chart, when somebody opens them.
  const made = (name, text, number) => {
    const element = document.createElement(name);
    element.textContent = text;
    if (number) element.className = "n";
    return element;
  };
  const tabulate = (place, chart) => {
    const fill = () => {
      const table = document.createElement("table");
      const head = table.createTHead().insertRow();
      head.append(made("th", chart.keys[0].length > 10 ? "Hour" : "Day"), ...chart.lines.map((line) => made("th", line.label, true)));
      const body = table.createTBody();
      chart.keys.forEach((key, index) => {
        body.insertRow().append(made("td", dated(key)), ...chart.lines.map((line) => made("td", written(line.values[index]), true)));
      });
      place.querySelector(".scroll").replaceChildren(table);
    };
    place.ontoggle = () => place.open && fill();
    if (place.open) fill();
  };

  // The period that is shown, the line of its chart, and whether by hour or by day.
  const shown = { period: figures.blog && figures.blog.chosen, line: "views", chart: "days" };
  const show = () => {
    if (!figures.blog) return;
    const period = figures.blog.periods.find((one) => one.name === shown.period);
    const chart = period.charts.find((one) => one.name === shown.chart) || period.charts[0];
    const line = chart.lines.find((one) => one.name === shown.line);
    for (const button of all("[data-period]")) button.setAttribute("aria-pressed", String(button.dataset.period === period.name));
    for (const part of all(".period")) part.hidden = part.dataset.of !== period.name;
    const part = all(".period").find((one) => !one.hidden);
    for (const figure of all("[data-line]", part)) figure.classList.toggle("on", figure.dataset.line === line.name);
    for (const button of all("[data-chart]", part)) button.setAttribute("aria-pressed", String(button.dataset.chart === chart.name));
    tabulate(part.querySelector("[data-numbers]"), chart);
    part.querySelector("[data-title]").textContent = line.label;
    const lines = [{ label: line.label, values: line.values, colour: "--accent" }];
    if (line.before.length) lines.push({ label: "Before", values: line.before, colour: "--before", dashed: true });
    draw(part.querySelector(".chart"), chart.keys, lines, 240, false);
  };
  const arrivals = () => {
    const place = document.getElementById("arrivals");
    const days = figures.data.rejected.days;
    if (!days.length) return;
    draw(place, days.map((day) => day.day), [
      { label: "Late rows", values: days.map((day) => day.late), colour: "--late" },
      { label: "Dead letters", values: days.map((day) => day.dead), colour: "--dead" },
    ], 190, true);
  };
  const redraw = () => {
    show();
    arrivals();
  };
  const choose = (values) => {
    Object.assign(shown, values);
    show();
  };
  for (const button of all("[data-period]")) button.addEventListener("click", () => choose({ period: button.dataset.period }));
  for (const button of all("[data-chart]")) button.addEventListener("click", () => choose({ chart: button.dataset.chart }));
  for (const figure of all("[data-line]")) {
    figure.addEventListener("click", () => choose({ line: figure.dataset.line }));
    figure.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose({ line: figure.dataset.line });
      }
    });
  }
  redraw();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    redraw();
  });

  // Tables that sort.
  const value = (cell) => {
    const text = cell.dataset.v === undefined ? cell.textContent.trim() : cell.dataset.v;
    const number = Number(text.replace(/[,%+±]/g, "").replace("−", "-"));
    return text !== "" && !Number.isNaN(number) ? number : text;
  };
  const compared = (one, other) => {
    if (typeof one === "number" && typeof other === "number") return one - other;
    if (typeof one === "number") return 1;
    if (typeof other === "number") return -1;
    return one.localeCompare(other);
  };
  for (const head of all(".sortable th")) {
    head.tabIndex = 0;
    const sort = () => {
      const at = head.cellIndex;
      const ascending = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "ascending" : !head.classList.contains("n");
      for (const other of all("th", head.parentNode)) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const table = head.closest("table");
      const rows = Array.from(table.tBodies[0].rows);
      rows.sort((one, other) => compared(value(one.cells[at]), value(other.cells[at])) * (ascending ? 1 : -1));
      table.tBodies[0].append(...rows);
      table.classList.add("all");
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
  }
  for (const button of all("[data-more]")) {
    button.addEventListener("click", () => {
      button.parentNode.querySelector("table").classList.add("all");
      button.remove();
    });
  }

  // Lineage: what a dataset is computed from, and what is computed from it.
  const picture = document.querySelector(".lineage");
  const point = (box) => {
    picture.classList.toggle("pointed", Boolean(box));
    const near = new Set(box ? [box.dataset.name, ...box.dataset.near.split(" ")] : []);
    for (const other of all(".box", picture)) {
      other.classList.toggle("near", near.has(other.dataset.name));
      other.classList.toggle("self", other === box);
    }
    for (const path of all("path", picture)) path.classList.toggle("near", near.has(path.dataset.from) && near.has(path.dataset.to));
  };
  for (const box of all(".box", picture)) {
    for (const event of ["mouseenter", "focus"]) box.addEventListener(event, () => point(box));
    for (const event of ["mouseleave", "blur"]) box.addEventListener(event, () => point(null));
  }

  // Light or dark: what the system prefers, until somebody chooses.
  const button = document.getElementById("theme");
  const remembered = (() => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  })();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  if (remembered === "light" || remembered === "dark") document.documentElement.dataset.theme = remembered;
  button.hidden = false;
  button.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", document.documentElement.dataset.theme);
    } catch {
      // A page opened from disk may have no storage: the choice then lasts as long as the page.
    }
    redraw();
  });
  dark.addEventListener("change", redraw);
  if (remembered) redraw();
})();
