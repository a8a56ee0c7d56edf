#!/usr/bin/python3
"""Draws the losses of a training log: as text, and as an SVG file.

    plot_loss.py log.jsonl curve.svg
"""
import json
import sys

COLUMNS, ROWS = 72, 16  # of the text
WIDTH, HEIGHT, MARGIN = 720, 400, 50  # of the SVG


def read_losses(path):
    with open(path) as file:
        lines = [json.loads(line) for line in file if line.strip()]
    return {line["step"]: line["loss"] for line in lines if line.get("loss") is not None}


def draw_text(losses):
    first, last = min(losses), max(losses)
    low, high = min(losses.values()), max(losses.values())
    canvas = [[" "] * COLUMNS for _ in range(ROWS)]
    for step, loss in losses.items():
        column = round((step - first) / max(1, last - first) * (COLUMNS - 1))
        row = round((high - loss) / ((high - low) or 1) * (ROWS - 1))
        canvas[row][column] = "*"
    for row, cells in enumerate(canvas):
        level = high - (high - low) * row / (ROWS - 1)
        print(f"{level:6.2f} |" + "".join(cells).rstrip())
    print(" " * 7 + "+" + "-" * COLUMNS)
    print(" " * 8 + f"step {first}".ljust(COLUMNS - 10) + f"step {last}".rjust(10))


def draw_svg(losses, path):
    first, last = min(losses), max(losses)
    low, high = min(losses.values()), max(losses.values())

    def place(step, loss):
        x = MARGIN + (step - first) / max(1, last - first) * (WIDTH - 2 * MARGIN)
        y = MARGIN + (high - loss) / ((high - low) or 1) * (HEIGHT - 2 * MARGIN)
        return f"{x:.1f},{y:.1f}"

    points = " ".join(place(*item) for item in sorted(losses.items()))
    bottom, right = HEIGHT - MARGIN, WIDTH - MARGIN
    with open(path, "w") as file:
        file.write(f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<path d="M{MARGIN},{MARGIN}V{bottom}H{right}" fill="none" stroke="black"/>
<polyline points="{points}" fill="none" stroke="steelblue" stroke-width="1.5"/>
<text x="{MARGIN - 6}" y="{MARGIN + 4}" text-anchor="end">{high:.2f}</text>
<text x="{MARGIN - 6}" y="{bottom + 4}" text-anchor="end">{low:.2f}</text>
<text x="{MARGIN}" y="{bottom + 18}">step {first}</text>
<text x="{right}" y="{bottom + 18}" text-anchor="end">step {last}</text>
<text x="{WIDTH / 2}" y="{MARGIN / 2}" text-anchor="middle">loss</text>
</svg>
""")


def main():
    log, image = sys.argv[1:]
    losses = read_losses(log)
    if not losses:
        sys.exit(f"{log}: no loss in it")
    draw_text(losses)
    draw_svg(losses, image)


if __name__ == "__main__":
    main()
