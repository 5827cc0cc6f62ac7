"""Data: sources of labelled images, their colour variants, static noise, resizing.

``sources`` loads the images, ``variants`` turns them into what a network is trained on, ``noise`` makes points in
representation space. To add a source: one loader and one line in ``sources.SOURCES``.
"""
