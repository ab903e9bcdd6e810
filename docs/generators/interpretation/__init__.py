"""What docs/results/interpretation.md has of results/interpretation/: the answer and the tables."""

from generators.interpretation import answer, tables

PAGES = {
    "docs/results/interpretation.md": {
        "answer": answer.answer,
        "coverage": lambda: tables.table(tables.coverage()),
        "kinds": lambda: tables.table(tables.kinds()),
        "place": lambda: tables.table(tables.place()),
        "contingency": lambda: tables.table(tables.contingency()),
        "object": lambda: tables.table(tables.on_the_object()),
        "flips": lambda: tables.table(tables.flips()),
        "decided": lambda: tables.table(tables.decided()),
        "runs": lambda: tables.table(tables.runs()),
        "attacks": lambda: tables.table(tables.attacks()),
    }
}
