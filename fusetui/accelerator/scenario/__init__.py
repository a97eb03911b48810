"""Scenarios: what is asked of which accelerator, with which plans and which trouble, as small TOML files.

`library/` ships some; each is a file there. `parse.load_scenario(name_or_path)` reads one, `build.Run` makes it run.
"""
