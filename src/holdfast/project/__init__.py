"""A project as Holdfast sees it: where its files are, its settings, and whether its folder is trusted."""
