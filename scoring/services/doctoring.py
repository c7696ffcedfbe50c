"""Checks of `evalapp doctor` for evaluators: installed plug-ins."""

from evalapp.ops.checks import OK, OPTIONAL, Check


def check_plugins() -> list[Check]:
    """A line for each package with evaluators, and for each plug-in that cannot be used."""
    from scoring.ml.registry import list_plugins

    result = []
    for plugin in list_plugins():
        name = f"plug-in {plugin.name}"
        if plugin.fault:
            way_out = "It is left out. Correct it, or uninstall its package, and restart web and workers."
            result.append(Check(name, OPTIONAL, f"{plugin.package}: {plugin.fault}", way_out))
        else:
            names = ", ".join(entry.name for entry in plugin.entries)
            result.append(Check(name, OK, f"{plugin.package}: {names}"))
    return result
