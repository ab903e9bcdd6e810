// A table as CSV, Markdown or LaTeX. Cells are texts or numbers; null is an empty cell.

const LATEX = {
  "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", $: "\\$", "#": "\\#", _: "\\_",
  "{": "\\{", "}": "\\}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
  "<": "$<$", ">": "$>$", "∞": "$\\infty$", "σ": "$\\sigma$",
};

export function tableAsCsv({ columns, rows }) {
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return lines(columns, rows).map((line) => line.map(quoted).join(",")).join("\n") + "\n";
}

export function tableAsMarkdown({ columns, rows }) {
  const row = (line) => `| ${line.map((text) => text.replaceAll("|", "\\|")).join(" | ")} |`;
  const [head, ...rest] = lines(columns, rows);
  return [row(head), row(head.map(() => "---")), ...rest.map(row)].join("\n") + "\n";
}

export function tableAsLatex({ columns, rows, caption }) {
  const safe = (text) => [...text].map((letter) => LATEX[letter] ?? letter).join("");
  const row = (line) => `${line.map(safe).join(" & ")} \\\\`;
  const [head, ...rest] = lines(columns, rows);
  const shape = columns.map((_, at) => (typeof rows[0]?.[at] === "number" ? "r" : "l")).join("");
  return [
    `% ${caption}`, `\\begin{tabular}{${shape}}`, "\\toprule", row(head), "\\midrule",
    ...rest.map(row), "\\bottomrule", "\\end{tabular}",
  ].join("\n") + "\n";
}

function lines(columns, rows) {
  const text = (cell) => (cell === null || cell === undefined ? "" : String(cell));
  return [columns, ...rows].map((line) => line.map(text));
}
