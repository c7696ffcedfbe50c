"""Checks of `evalapp doctor` for evaluators: installed plug-ins, and endpoints of judges."""

from django.conf import settings

from evalapp.common.errors import BadInput
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


def check_endpoints() -> list[Check]:
    """A line for each endpoint of judges: its host and models, and whether its key can be read. Nothing is sent."""
    from ..selectors.judges import get_endpoint, make_key_reader, read_model_facts

    result = []
    for name, row in settings.JUDGE_ENDPOINTS.items():
        try:
            make_key_reader(name)()
            facts = read_model_facts(get_endpoint(name))
        except BadInput as error:
            way_out = "Set the variable, file or folder that JUDGE_ENDPOINTS names, and restart the workers."
            result.append(Check(f"judge {name}", OPTIONAL, error.detail, way_out))
        else:
            place = f"{row['url']}: {', '.join(row['models'])}" if facts is None else f"{row['folder']}: {facts.kind}"
            result.append(Check(f"judge {name}", OK, place))
    return result
