"""How a method's curves look is said in its paper's file."""

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from privclust_papers.report.drawing import style
from privclust_papers.report.drawing.panels import mean_curves
from privclust_papers.settings.config import load_yaml

LOOKS = load_yaml("workflow/schemas/paper.schema.yaml")["$defs"]


def test_the_schema_takes_what_can_be_drawn():
    assert LOOKS["colour"]["enum"] == list(style.COLOURS)
    assert set(LOOKS["marker"]["enum"]) <= set(Line2D.markers)
    assert LOOKS["promise"]["enum"] == list(style._PROMISES)
    assert LOOKS["line"]["anyOf"][0]["enum"] == list(style._LINES)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"colour": "grey", "marker": "s"}, ("#7f7f7f", "s", "-")),
        ({"colour": "black", "promise": "none"}, ("#000000", "", ":")),
        ({"colour": "black", "promise": "weaker"}, ("#000000", "", "--")),
        ({"colour": "black", "promise": "weaker", "line": "dashdot"}, ("#000000", "", "-.")),
        ({"colour": "black", "line": [4, 1]}, ("#000000", "", (0, (4, 1)))),
    ],
)
def test_an_entry_tells_colour_marker_and_line(entry, expected):
    (found,) = style.styles_of([("em", entry)]).values()
    assert (found.color, found.marker, found.dash) == expected


def test_a_users_methods_come_last_with_their_own_looks():
    own = [f"own_{number}" for number in range(4)]
    styles = style.styles_of([("em", {"colour": "black"}), ("own_0", {}), ("ssc", {})], own)
    assert list(styles) == ["em", "own_0", "ssc", *own[1:]]
    looks = {(styles[name].color, styles[name].marker) for name in own}
    assert len(looks) == 4
    assert not {color for color, _ in looks} & set(style.COLOURS.values())
    assert {styles[name].dash for name in own} == {"-"}


HOSTILE = """
text.usetex: True
axes.prop_cycle: cycler('color', ['ff0000', '00ff00'])
figure.facecolor: black
savefig.bbox: tight
savefig.dpi: 30
font.size: 30
svg.hashsalt: theirs
"""


def test_bytes_of_a_drawing_do_not_depend_on_matplotlibrc(tmp_path):
    endings = ("svg", "png", "csv")
    (tmp_path / "hostile").write_text(HOSTILE)
    (tmp_path / "usual").touch()
    for copy in ("usual", "again", "hostile"):
        settings = "hostile" if copy == "hostile" else "usual"
        with mpl.rc_context(fname=tmp_path / settings):
            with style.canvas(3.0, 2.0, {}) as figure:
                figure.subplots().plot([1.0, 2.0], label="x")
            drawing = style.Drawing(figure, pd.DataFrame({"x": [1.0, 1 / 3]}))
            style.save(drawing, *(tmp_path / f"{copy}.{end}" for end in endings))
    for end in endings:
        usual = (tmp_path / f"usual.{end}").read_bytes()
        assert (tmp_path / f"again.{end}").read_bytes() == usual
        assert (tmp_path / f"hostile.{end}").read_bytes() == usual


def test_bands_on_a_log_axis_end_above_zero():
    table = pd.DataFrame(
        {"method": "a", "label": "A", "x": [1.0, 10.0], "mean": [1.0, 1e-3], "se": 0.8, "n": 6}
    )
    styles = {"a": style.MethodStyle("#000000", "o", "-")}
    for is_log, lowest in ((True, 0.0), (False, -3.0)):
        axis = Figure().subplots()
        mean_curves(axis, table, "x", ["a"], styles, is_log=is_log)
        (band,) = axis.collections
        ends = band.get_paths()[0].vertices[:, 1]
        assert ends.min() >= lowest
        assert (ends.min() > 0.0) == is_log
