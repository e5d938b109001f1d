"use strict";

// One section at a time: the one that the address names, or the first.
function show() {
  const sections = [...document.querySelectorAll("section")];
  const named = sections.find((section) => "#" + section.id === location.hash) || sections[0];
  for (const section of sections) section.classList.toggle("shown", section === named);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === "#" + named.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  window.scrollTo(0, 0);
}

// Sorts a table's rows by the clicked column; missing values stay last, equal rows keep their order.
function sort(heading) {
  const row = heading.parentElement;
  const column = [...row.children].indexOf(heading);
  const isUp = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of row.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", isUp ? "ascending" : "descending");
  const body = heading.closest("table").tBodies[0];
  const value = (line) => line.children[column].dataset.sort;
  const isNumber = heading.dataset.kind === "number";
  const compare = (one, other) =>
    isNumber ? Number(one) - Number(other) : one.localeCompare(other, "en", { numeric: true });
  const rows = [...body.rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
    return isUp ? compare(a, b) : compare(b, a);
  });
  body.append(...rows);
}

document.documentElement.classList.add("scripted");
window.addEventListener("hashchange", show);
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sort(button.parentElement));
}
show();
