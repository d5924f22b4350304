"use strict";
(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));

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
    document.getElementById("old").hidden = Date.now() - Date.parse(document.getElementById("made").dateTime) < 7200000;
  };
  tick();
  setInterval(tick, 30000);

  for (const button of all("[data-period]")) {
    button.addEventListener("click", () => {
      for (const other of all("[data-period]")) other.setAttribute("aria-pressed", String(other === button));
      for (const part of all(".period")) part.hidden = part.dataset.of !== button.dataset.period;
    });
  }
  for (const button of all("[data-more]")) {
    button.addEventListener("click", () => {
      button.parentNode.querySelector("table").classList.add("all");
      button.remove();
    });
  }

  // Countries are counted by their codes.
  const regions = new Intl.DisplayNames(["en"], { type: "region" });
  for (const name of all(".country td span")) {
    if (/^[A-Z]{2}$/.test(name.textContent)) name.parentNode.title = name.textContent = regions.of(name.textContent);
  }
})();
