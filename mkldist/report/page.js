"use strict";
// Sorting, filtering, hiding and copying of the tables.  Without scripts the tables read as well.
const texts = (row) => [...row.cells].map((cell) => cell.textContent.trim());
const shown = (element) => !element.hidden;

const forms = {
  CSV: (rows) => rows.map((row) => row.map((text) =>
    /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text).join(",")).join("\n"),
  Markdown: ([head, ...rows]) => [head, head.map(() => "---"), ...rows]
    .map((row) => `| ${row.map((text) => text.replaceAll("|", "\\|")).join(" | ")} |`).join("\n"),
  LaTeX: ([head, ...rows]) => {
    const line = (row) => row.map((text) => text.replace(/[&%$#_{}]/g, "\\$&")
      .replaceAll("±", "$\\pm$")).join(" & ") + " \\\\";
    return [`\\begin{tabular}{${"l".repeat(head.length)}}`, "\\hline", line(head), "\\hline",
      ...rows.map(line), "\\hline", "\\end{tabular}"].join("\n");
  },
};

function sortBy(table, column, heading) {
  const descending = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const key = (row) => {
    const cell = row.cells[column];
    return cell.dataset.key === undefined ? cell.textContent.trim() : Number(cell.dataset.key);
  };
  const compare = (one, two) => {
    const [a, b] = [key(one), key(two)];
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;  // texts after numbers
    const order = typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return descending ? -order : order;
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort(compare));
}

for (const tools of document.querySelectorAll(".tools")) {
  const table = document.getElementById(`table-${tools.dataset.table}`);
  const body = table.tBodies[0];
  const count = tools.querySelector(".count");
  tools.hidden = false;
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    button.addEventListener("click", () => sortBy(table, column, heading));
    heading.replaceChildren(button);
  });
  tools.querySelector("input[type=search]").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    const left = [...body.rows].filter(shown).length;
    count.textContent = words.length ? `${left} of ${body.rows.length} rows` : "";
  });
  for (const box of tools.querySelectorAll("[data-column]")) {
    box.addEventListener("change", () => {
      for (const row of table.rows) row.cells[Number(box.dataset.column)].hidden = !box.checked;
    });
  }
  for (const button of tools.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const rows = [...table.rows].filter(shown).map((row) =>
        texts(row).filter((_, column) => shown(row.cells[column])));
      const text = forms[button.dataset.copy](rows);
      try {
        await navigator.clipboard.writeText(text);
        count.textContent = `${rows.length - 1} rows copied as ${button.dataset.copy}`;
      } catch {
        // Pages opened from a file may not write to the clipboard: show the text to copy by hand.
        const area = document.createElement("textarea");
        area.value = text;
        area.setAttribute("aria-label", `${button.dataset.copy} to copy`);
        tools.append(area);
        area.select();
        count.textContent = document.execCommand("copy")
          ? `${rows.length - 1} rows copied as ${button.dataset.copy}` : "Copy the text";
        area.remove();
      }
    });
  }
}
