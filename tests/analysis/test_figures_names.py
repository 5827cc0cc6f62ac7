from __future__ import annotations

import itertools

from matplotlib.colors import to_rgb

from analysis.names import cut_axis, in_order, shown
from analysis.styles import FLOOR_STYLES, PAPER_STYLES, UNCUT_STYLE, sequence, styles

CUTS = ["maxpool", "layer1", "layer2", "layer3", "layer4", "avgpool"]


def test_names_and_order_of_the_paper() -> None:
    floors = {"noise": "noise", "random_init": "random_init", "untrained": "random_init"}
    given = ["untrained", "random_init", "birds", "noise", "mix", "greyscale", "ants", "colour_only", "colour"]
    given += ["correlated", "digit", "birds"]
    assert [shown(name) for name in in_order(given, floors)] == [
        *("Digit", "Correlated", "Colour", "Colour-Only", "Greyscale-MNIST", "Mix"),
        *("birds", "ants", "Noise", "untrained", "Random init"),
    ]


def test_cuts_of_a_resnet_are_the_layers_that_follow() -> None:
    axis = cut_axis(CUTS, ["resnet18", "resnet18_quarter"])
    layers = [label.splitlines()[0] for label in axis.labels]
    assert layers == ["Res Block 1", "Res Block 2", "Res Block 3", "Res Block 4", "Linear"]
    assert axis.cuts == CUTS[:5]
    assert axis.left_out == {"avgpool": "layer4"}


def test_the_only_cut_before_a_layer_stays() -> None:
    axis = cut_axis(["layer3", "avgpool"], ["resnet18"])
    assert (axis.cuts, axis.labels, axis.left_out) == (
        ["layer3", "avgpool"],
        ["Res Block 4\n(layer3)", "Linear\n(avgpool)"],
        {},
    )


def test_other_networks_and_other_cuts_keep_their_names() -> None:
    for cuts, archs in ((CUTS, ["resnet18", "vgg19"]), ([*CUTS, "relu"], ["resnet18"]), (CUTS, [None])):
        axis = cut_axis(cuts, archs)
        assert (axis.cuts, axis.labels, axis.left_out) == (cuts, cuts, {})


def test_a_network_looks_the_same_in_any_company() -> None:
    few = styles({"birds": None, "digit": None})
    many = styles({"digit": None, "noise": "noise", "birds": None, "mix": None})
    assert few["birds"] == many["birds"]
    assert few["digit"] == many["digit"] == PAPER_STYLES["digit"]
    assert many["noise"] == FLOOR_STYLES["noise"]


def test_no_two_networks_look_alike() -> None:
    names = {**dict.fromkeys(PAPER_STYLES), **{f"net {number}": None for number in range(60)}}
    floors = {**{f"noise_{number}": "noise" for number in range(4)}, "random_init": "random_init"}
    found = list(styles({**names, **floors}).values())
    assert len(set(found)) == len(found) == 71
    assert UNCUT_STYLE not in found


def test_hues_differ_to_colour_blind_readers() -> None:
    """Machado, Oliveira and Fernandes 2009, deuteranopia at full severity, in sRGB as given there."""
    rows = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
    seen = [
        tuple(sum(a * b for a, b in zip(row, to_rgb(style.colour), strict=True)) for row in rows)
        for style in PAPER_STYLES.values()
    ]
    apart = [sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) ** 0.5 for x, y in itertools.combinations(seen, 2)]
    assert min(apart) > 0.1
    assert len({style.marker for style in PAPER_STYLES.values()}) == len(PAPER_STYLES)


def test_cuts_run_from_dark_to_light() -> None:
    lightness = [sum(to_rgb(style.colour)) for style in sequence(5)]
    assert lightness == sorted(lightness)
    assert len(sequence(1)) == 1
