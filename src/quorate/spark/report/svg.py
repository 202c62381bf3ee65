"""Pictures as SVG: pure functions of numbers and names. All text is escaped.

Times are ms since 1970, UTC; `span` is the first and the last time of the axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final, NamedTuple

TimeSpan = tuple[int, int]

WIDTH: Final = 960
LABELS: Final = 170
"""Pixels on the left for the names of rows."""
ROW: Final = 22
AXIS: Final = 24
_TICKS: Final = 4
_HUES: Final = (212, 28, 140, 350, 265, 48, 180, 310, 90, 15)


class Bar(NamedTuple):
    """A bar in a row, from one time to another."""

    row: str
    start: int
    end: int
    text: str
    colour: str


def colour(number: int) -> str:
    """The colour of an id, always the same; grey for none (-1)."""
    if number < 0:
        return "hsl(0 0% 70%)"
    return f"hsl({_HUES[number % len(_HUES)]} 55% {45 + number // len(_HUES) % 3 * 10}%)"


def bands(bars: Sequence[Bar], span: TimeSpan) -> str:
    """A row of bars for each name, in the order in which the rows first appear."""
    rows = list(dict.fromkeys(bar.row for bar in bars))
    out = [_label(name, place) for place, name in enumerate(rows)]
    for bar in bars:
        left, right = _x(bar.start, span), _x(bar.end, span)
        top = rows.index(bar.row) * ROW
        out.append(
            f'<rect x="{left:.1f}" y="{top + 2}" width="{max(right - left, 1):.1f}" '
            f'height="{ROW - 4}" fill="{bar.colour}"><title>{escape(bar.text)}</title></rect>'
        )
    return _picture(out, len(rows) * ROW, span)


def heat(cells: Mapping[tuple[str, int], int], columns: int, span: TimeSpan) -> str:
    """A square for each (row, column): a larger count is darker. The scale is the square root, so that
    small counts are visible, too."""
    rows = sorted({row for row, _ in cells})
    most = max(cells.values(), default=1)
    width = (WIDTH - LABELS) / columns
    out = [_label(name, place) for place, name in enumerate(rows)]
    for (row, column), count in sorted(cells.items()):
        when = span[0] + (span[1] - span[0]) * column // columns
        light = 92 - 62 * (count / most) ** 0.5
        out.append(
            f'<rect x="{LABELS + column * width:.1f}" y="{rows.index(row) * ROW + 1}" '
            f'width="{width:.1f}" height="{ROW - 2}" fill="hsl(14 80% {light:.0f}%)">'
            f"<title>{escape(f'{row}: {count} from {moment(when)} on')}</title></rect>"
        )
    return _picture(out, len(rows) * ROW, span)


def lines(series: Mapping[str, Sequence[tuple[int, int]]], span: TimeSpan) -> str:
    """A step line for each name of (time, value), on an axis from 0 to the largest value."""
    height = 120
    most = max((value for points in series.values() for _, value in points), default=0) or 1
    out = [
        f'<text x="{LABELS - 8}" y="12" text-anchor="end">{most}</text>',
        f'<text x="{LABELS - 8}" y="{height}" text-anchor="end">0</text>',
    ]
    for place, (name, points) in enumerate(series.items()):
        path = ""
        for when, value in points:
            x, y = _x(when, span), height - value / most * (height - 6)
            path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
        if path:
            path += f"H{WIDTH}"
        paint = colour(place)
        out.append(f'<path d="{path}" fill="none" stroke="{paint}" stroke-width="2"/>')
        y = 32 + 16 * place
        out.append(f'<text x="0" y="{y}" fill="{paint}">{escape(name)}</text>')
    return _picture(out, height, span)


def amounts(values: Sequence[tuple[str, float]]) -> str:
    """A bar from 0 for each (name, amount), with the amount at its end; no time axis."""
    most = max((value for _, value in values), default=0) or 1
    out = []
    for place, (name, value) in enumerate(values):
        width, top = value / most * (WIDTH - 2 * LABELS), place * ROW
        amount = f"{value:,.1f}".removesuffix(".0")
        out.append(_label(name, place))
        out.append(
            f'<rect x="{LABELS}" y="{top + 2}" width="{max(width, 1):.1f}" height="{ROW - 4}" '
            f'fill="{colour(place)}"/>'
            f'<text x="{LABELS + width + 6:.1f}" y="{top + ROW - 7}">{amount}</text>'
        )
    height = len(values) * ROW
    frame = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return f'<svg {frame} role="img">{"".join(out)}</svg>'


def moment(when: int) -> str:
    return datetime.fromtimestamp(when / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _x(when: int, span: TimeSpan) -> float:
    first, last = span
    share = (when - first) / max(last - first, 1)
    return LABELS + min(max(share, 0), 1) * (WIDTH - LABELS)


def _label(name: str, place: int) -> str:
    shown = name if len(name) <= 26 else name[:25] + "…"
    y = place * ROW + ROW - 7
    return f'<text x="0" y="{y}">{escape(shown)}<title>{escape(name)}</title></text>'


def _picture(out: Sequence[str], height: int, span: TimeSpan) -> str:
    ticks = []
    for number in range(_TICKS + 1):
        when = span[0] + (span[1] - span[0]) * number // _TICKS
        x = _x(when, span)
        anchor = "end" if number == _TICKS else "start" if number == 0 else "middle"
        ticks.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" class="tick"/>')
        text = moment(when)[5:]
        ticks.append(f'<text x="{x:.1f}" y="{height + 16}" text-anchor="{anchor}">{text}</text>')
    total = height + AXIS
    return (
        f'<svg viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}" role="img">'
        + "".join([*ticks, *out])
        + "</svg>"
    )
