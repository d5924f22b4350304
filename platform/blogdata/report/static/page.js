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

  // What can be scrolled can be scrolled by keys.
  const reach = () => {
    for (const part of all(".scroll, pre")) {
      const more = part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight;
      more ? part.setAttribute("tabindex", "0") : part.removeAttribute("tabindex");
    }
  };
  addEventListener("toggle", reach, true);

  // Charts.
  const seconds = (key) => Date.parse(key.length > 10 ? `${key}:00:00Z` : `${key}T00:00:00Z`) / 1000;
  const written = (value) => (value === null || value === undefined ? "–" : whole.format(value));
  const SLOTS = { hours: "Hour", days: "Day", weeks: "Week", months: "Month" };
  const dated = (key, slot) => {
    const date = new Date(seconds(key) * 1000);
    if (slot === "months") return date.toLocaleDateString("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
    const day = date.toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
    if (slot === "weeks") return `from ${day}`;
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
  const draw = (place, { name, keys }, lines, height, bars) => {
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
      points: { show: !bars && keys.length < 16 },
      // Where nothing is pointed at, the newest.
      value: (_, value, __, index) => written(index === null ? line.values[keys.length - 1] : value),
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
        series: [{ label: SLOTS[name], value: (_, time, __, index) => dated(keys[index ?? keys.length - 1], name) }, ...series],
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
      head.append(made("th", SLOTS[chart.name]), ...chart.lines.map((line) => made("th", line.label, true)));
      for (const cell of head.cells) cell.scope = "col";
      const body = table.createTBody();
      chart.keys.forEach((key, index) => {
        body.insertRow().append(made("td", dated(key, chart.name)), ...chart.lines.map((line) => made("td", written(line.values[index]), true)));
      });
      place.querySelector(".scroll").replaceChildren(table);
    };
    place.ontoggle = () => place.open && fill();
    if (place.open) fill();
  };

  // Any range of days, counted from the days of the history.
  const history = figures.blog && figures.blog.history;
  const dayOf = (key) => Math.round((Date.parse(key.slice(0, 10)) - Date.parse(history.first)) / 86400000);
  const keyOf = (day) => new Date(Date.parse(history.first) + day * 86400000).toISOString().slice(0, 10);
  const summed = (numbers, first, last) => numbers.slice(first, last + 1).reduce((sum, number) => sum + number, 0);
  // Those of a range are, on each of its days, those who were not there on an earlier day of it.
  const distinct = (byDay, first, last) => {
    let found = 0;
    for (let day = first; day <= last; day++) {
      for (let at = 0; at < byDay[day].length; at += 2) {
        const gap = byDay[day][at];
        if (gap === 0 || gap > day - first) found += byDay[day][at + 1];
      }
    }
    return found;
  };
  const bounces = (first, last) => {
    let found = 0;
    for (let day = first; day <= last; day++) {
      const triples = history.bounced[day];
      for (let at = 0; at < triples.length; at += 3) {
        const [before, after, count] = triples.slice(at, at + 3);
        if ((before === 0 || before > day - first) && (after === 0 || after > last - day)) found += count;
      }
    }
    return found;
  };
  const counted = (first, last) => {
    const views = summed(history.days.views, first, last);
    const visits = distinct(history.visits, first, last);
    const visitors = distinct(history.visitors, first, last);
    const fresh = summed(history.days.new, first, last);
    return {
      views, visits, visitors, new: fresh, returning: visitors - fresh, private_views: summed(history.private, first, last),
      views_per_visit: visits ? views / visits : null, bounce: visits ? bounces(first, last) / visits : null,
    };
  };
  const asShare = (value) => (value === null ? "–" : value > 0 && value < 0.001 ? "<0.1%" : `${(value * 100).toFixed(1)}%`);
  const inUnit = (value, unit) => (value === null ? "–" : unit === "share" ? asShare(value) : unit === "ratio" ? value.toFixed(2) : whole.format(value));
  const grown = (value, before, better) => {
    const element = document.createElement("b");
    if (!before || value === null) return element;
    const percent = (value / before - 1) * 100;
    const digits = Math.abs(percent) >= 10 ? 0 : 1;
    const text = new Intl.NumberFormat("en", { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(Math.abs(percent));
    const same = Math.abs(percent) < 0.05;
    element.textContent = same ? "±0%" : `${percent > 0 ? "+" : "−"}${text}%`;
    element.className = same || !better ? "flat" : percent * better > 0 ? "up" : "down";
    return element;
  };
  const pale = (text) => Object.assign(made("span", text), { className: "muted" });
  // Countries are counted by their codes.
  const regions = new Intl.DisplayNames(["en"], { type: "region" });
  const shownName = (table, name) => ("countries" in table.dataset && /^[A-Z]{2}$/.test(name) ? regions.of(name) : name);
  for (const table of all("[data-countries]")) {
    for (const row of table.tBodies[0].rows) {
      const span = row.cells[0].querySelector("span");
      row.cells[0].title = span.textContent = shownName(table, span.textContent);
    }
  }
  const RANKED = 15;
  const rank = (table, first, last, earlier) => {
    const ranking = history.rankings[table.dataset.ranking];
    const sums = (from, to) => ranking.counts.map((flat) => {
      let sum = 0;
      for (let at = 0; at < flat.length; at += 2) if (flat[at] >= from && flat[at] <= to) sum += flat[at + 1];
      return sum;
    });
    const now = sums(first, last);
    const before = earlier && sums(...earlier);
    const others = summed(ranking.others, first, last);
    const total = summed(now, 0, now.length) + others;
    const most = now.map((_, at) => at).filter((at) => now[at]).sort((one, other) => now[other] - now[one]);
    const rows = most.filter((at) => !ranking.apart.includes(at));
    table.tBodies[0].replaceChildren(...rows.slice(0, RANKED).map((at) => {
      const row = document.createElement("tr");
      const name = made("td", "");
      const fill = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      for (const [key, value] of [["class", "fill"], ["preserveAspectRatio", "none"], ["viewBox", "0 0 100 1"], ["aria-hidden", "true"]]) fill.setAttribute(key, value);
      const bar = document.createElementNS(fill.namespaceURI, "rect");
      bar.setAttribute("width", (now[at] / total) * 100);
      bar.setAttribute("height", 1);
      fill.append(bar);
      name.title = shownName(table, ranking.names[at]);
      name.append(fill, made("span", name.title));
      const change = made("td", before ? (before[at] ? "" : "new") : "–", true);
      if (before && before[at]) change.append(grown(now[at], before[at], Number(table.dataset.better)));
      if (before) change.dataset.v = now[at] - before[at];
      row.append(name, made("td", whole.format(now[at]), true), made("td", asShare(now[at] / total), true), change);
      return row;
    }));
    const rest = rows.slice(RANKED).reduce((sum, at) => sum + now[at], others);
    const apart = [...most.filter((at) => ranking.apart.includes(at)).map((at) => [ranking.names[at], now[at]]), ["others", rest]];
    const text = table.closest(".card").querySelector(".apart");
    text.replaceChildren(...apart.filter(([, count]) => count).map(([name, count]) => {
      const part = made("span", `${name} `);
      part.append(made("b", asShare(count / total)));
      return part;
    }));
    text.hidden = !text.childElementCount;
  };
  const shade = (grid, first, last) => {
    const sums = Array.from({ length: 168 }, () => [0, 0]);
    for (let hour = first * 24; hour < Math.min((last + 1) * 24, history.hours.views.length); hour++) {
      // A week of the grid begins on Monday; getUTCDay counts from Sunday.
      const weekday = (new Date(Date.parse(history.first) + hour * 3600000).getUTCDay() + 6) % 7;
      const slot = sums[weekday * 24 + (hour % 24)];
      slot[0] += history.hours.views[hour];
      slot[1] += 1;
    }
    const means = sums.map(([sum, hours]) => (hours ? sum / hours : null));
    const top = Math.max(...means);
    for (const row of grid.tBodies[0].rows) {
      const weekday = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].indexOf(row.cells[0].textContent);
      Array.from(row.cells).slice(1).forEach((cell, hour) => {
        const mean = means[weekday * 24 + hour];
        cell.className = mean === null ? "none" : `s${top ? Math.ceil((9 * mean) / top) : 0}`;
        cell.firstChild.textContent = written(mean);
        cell.title = `${row.cells[0].textContent} ${String(hour).padStart(2, "0")}:00, ${written(mean)}`;
      });
    }
    grid.parentNode.querySelector(".legend span").textContent = written(top);
  };
  const ranged = (from, to) => {
    const [first, last] = [dayOf(from), dayOf(to)];
    const part = document.querySelector(".period[data-of=range]");
    // The days before of the same weekdays; a day that is not over cannot be held against a whole one.
    const shift = Math.ceil((last - first + 1) / 7) * 7;
    const isWhole = (last + 1) * 24 <= history.hours.views.length;
    const earlier = first >= shift && isWhole ? [first - shift, last - shift] : null;
    const now = counted(first, last);
    const before = earlier && counted(...earlier);
    const known = earlier && earlier[0] >= 28;
    const span = (one, other) => (one === other ? dated(keyOf(one)) : `${dated(keyOf(one))} – ${dated(keyOf(other))}`);
    part.querySelector(".span").replaceChildren(span(first, last));
    if (earlier) part.querySelector(".span").append(pale(`, beside ${span(...earlier)}`));
    const whole = figures.blog.periods[figures.blog.periods.length - 1];
    for (const figure of all("[data-figure]", part)) {
      const { name, unit, better } = whole.figures.find((one) => one.name === figure.dataset.figure);
      const compares = before && (known || !["new", "returning"].includes(name));
      figure.querySelector(".value").textContent = inUnit(now[name], unit);
      figure.querySelector(".delta").replaceChildren(...(compares ? [grown(now[name], before[name], better), pale(` ${inUnit(before[name], unit)}`)] : []));
    }
    for (const table of all("[data-ranking]", part)) rank(table, first, last, earlier);
    for (const grid of all(".grid", part)) shade(grid, first, last);
    const chart = (name, label, length) => {
      const until = Math.min((last + 1) * length, history[name].views.length);
      const cut = (numbers) => numbers.slice(first * length, until);
      const past = (numbers) => (earlier ? numbers.slice(earlier[0] * length, (earlier[1] + 1) * length) : []);
      const key = (at) => (length === 1 ? keyOf(at) : `${keyOf(Math.floor(at / 24))}T${String(at % 24).padStart(2, "0")}`);
      return {
        name, label,
        keys: cut(history[name].views).map((_, at) => key(first * length + at)),
        lines: all("[data-line]", part).map(({ dataset, firstElementChild }) => ({
          name: dataset.line, label: firstElementChild.textContent,
          values: cut(history[name][dataset.line]), before: past(history[name][dataset.line]),
        })),
      };
    };
    // Weeks and months of the range; those of the time before begin on the same days only if they are weeks.
    const grouped = (name, label, begins) => {
      const starts = [];
      for (let day = first; day <= last; day++) if (day === first || begins(new Date(Date.parse(keyOf(day))))) starts.push(day);
      const values = (back) => starts.map((day, at) => counted(day - back, (at + 1 < starts.length ? starts[at + 1] - 1 : last) - back));
      const now = values(0);
      const past = earlier && name === "weeks" ? values(first - earlier[0]) : [];
      return {
        name, label,
        keys: starts.map(keyOf),
        lines: all("[data-line]", part).map(({ dataset, firstElementChild }) => ({
          name: dataset.line, label: firstElementChild.textContent,
          values: now.map((one) => one[dataset.line]), before: past.map((one) => one[dataset.line]),
        })),
      };
    };
    const days = last - first + 1;
    const charts = [
      ...(days > 1 ? [chart("days", "By day", 1)] : []),
      ...(days >= 29 ? [grouped("weeks", "By week", (date) => date.getUTCDay() === 1)] : []),
      ...(days >= 32 ? [grouped("months", "By month", (date) => date.getUTCDate() === 1)] : []),
      ...(days <= 28 ? [chart("hours", "By hour", 24)] : []),
    ];
    for (const button of all("[data-chart]", part)) button.hidden = charts.length < 2 || !charts.some((one) => one.name === button.dataset.chart);
    part.querySelector(".choice.small").hidden = charts.length < 2;
    return { name: "range", charts };
  };

  // The period that is shown, the line of its chart, and whether by hour or by day.
  const shown = { period: figures.blog && figures.blog.chosen, line: "views", chart: "days" };
  const dates = all("[data-day]");
  const show = () => {
    if (!figures.blog) return;
    const period = shown.period === "range" ? ranged(...dates.map((one) => one.value)) : figures.blog.periods.find((one) => one.name === shown.period);
    if (shown.period !== "range") [dates[0].value, dates[1].value] = [period.first.slice(0, 10), period.last.slice(0, 10)];
    const chart = period.charts.find((one) => one.name === shown.chart) || period.charts[0];
    const line = chart.lines.find((one) => one.name === shown.line);
    for (const button of all("[data-period]")) button.setAttribute("aria-pressed", String(button.dataset.period === period.name));
    for (const part of all(".period")) part.hidden = part.dataset.of !== period.name;
    const part = all(".period").find((one) => !one.hidden);
    for (const figure of all("[data-line]", part)) figure.setAttribute("aria-pressed", String(figure.dataset.line === line.name));
    for (const button of all("[data-chart]", part)) button.setAttribute("aria-pressed", String(button.dataset.chart === chart.name));
    tabulate(part.querySelector("[data-numbers]"), chart);
    part.querySelector("[data-title]").textContent = line.label;
    const lines = [{ label: line.label, values: line.values, colour: "--accent" }];
    if (line.before.length) lines.push({ label: "Before", values: line.before, colour: "--before", dashed: true });
    draw(part.querySelector(".chart"), chart, lines, 240, false);
  };
  const arrivals = () => {
    const place = document.getElementById("arrivals");
    const days = figures.data.rejected.days;
    if (!days.length) return;
    draw(place, { name: "days", keys: days.map((day) => day.day) }, [
      { label: "Late rows", values: days.map((day) => day.late), colour: "--late" },
      { label: "Dead letters", values: days.map((day) => day.dead), colour: "--dead" },
    ], 190, true);
  };
  const redraw = () => {
    show();
    arrivals();
    reach();
  };
  const choose = (values) => {
    Object.assign(shown, values);
    show();
    reach();
  };
  for (const button of all("[data-period]")) button.addEventListener("click", () => choose({ period: button.dataset.period }));
  for (const date of dates) {
    date.addEventListener("change", () => {
      if (!date.value || date.value < date.min || date.value > date.max) return;
      for (const other of dates) {
        if (date.dataset.day === "first" ? other.value < date.value : other.value > date.value) other.value = date.value;
      }
      choose({ period: "range" });
    });
    date.closest(".days").hidden = false;
  }
  for (const button of all("[data-chart]")) button.addEventListener("click", () => choose({ chart: button.dataset.chart }));
  for (const figure of all("[data-line]")) figure.addEventListener("click", () => choose({ line: figure.dataset.line }));
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
    const button = made("button", "");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const at = head.cellIndex;
      const ascending = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "ascending" : !head.classList.contains("n");
      for (const other of all("th", head.parentNode)) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const table = head.closest("table");
      const rows = Array.from(table.tBodies[0].rows);
      rows.sort((one, other) => compared(value(one.cells[at]), value(other.cells[at])) * (ascending ? 1 : -1));
      table.tBodies[0].append(...rows);
      table.classList.add("all");
    });
  }
  for (const button of all("[data-more]")) {
    button.addEventListener("click", () => {
      button.parentNode.querySelector("table").classList.add("all");
      button.remove();
    });
  }

  // A table of shades: the number of the cell that is pointed at.
  for (const grid of all(".grid")) {
    const told = grid.parentNode.querySelector("output");
    for (const event of ["click", "mouseover"]) {
      grid.addEventListener(event, ({ target }) => {
        const cell = target.closest("td[title]");
        if (cell) told.textContent = cell.title;
      });
    }
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
