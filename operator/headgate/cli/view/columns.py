"""Tables of plain text: columns under headings, two blanks apart, as `kubectl` writes them.

They read well in a log, can be cut with `awk`, and carry colour only where a terminal shows it.
"""

from collections.abc import Iterator, Sequence

from rich.text import Text

GAP = "  "

Cell = str | Text
Row = Sequence[Cell]


def columns(rows: Sequence[Row], indent: str = "", right: frozenset[int] = frozenset()) -> Iterator[Text]:
    """Yield one line for each row, cells padded to the widest of their column; those in `right` to the right."""
    texts = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    widths = [max(cell.cell_len for cell in column) for column in zip(*texts, strict=True)]
    for row in texts:
        line = Text(indent)
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            padding = " " * (width - cell.cell_len)
            gap = GAP if number + 1 < len(row) else ""
            line.append_text(
                Text.assemble(padding, cell, gap) if number in right else Text.assemble(cell, padding, gap)
            )
        line.rstrip()
        yield line
