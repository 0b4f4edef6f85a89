"""The first phase of a run: models become networks with tasks."""

from __future__ import annotations

from collections.abc import Mapping

from ansor.frontend.importers.sizes import Sizes
from ansor.run.check.network import SourceComparison
from ansor.run.prepare import prepare_network
from ansor.run.session import Session
from ansor.run.templates import offered
from ansor.templates.metaschedule_records import recorded_traces
from ansor.templates.template import Offer, offers


def import_models(
    session: Session,
    models: Mapping[str, object],
    example_inputs: Mapping[str, object],
    sizes: Mapping[str, Sizes],
) -> None:
    """Imports the models and compares those that have an original with it."""
    for name, model in models.items():
        session.note(f"importing {name}")
        examples, kinds = example_inputs.get(name), session.settings.variants
        network = prepare_network(
            model, session.target, session.text, examples, kinds, sizes.get(name)
        )
        comparison = None
        if session.settings.check_import and network.source is not None:
            session.note(f"comparing the import of {name} with the original")
            comparison = SourceComparison(network.source, session.target)
            comparison.check_import(network.mod)
            session.comparisons[name] = comparison
        session.networks[name] = session.precision.entered(name, network, comparison)
    alone = not session.settings.sketches
    session.networks = offered(session.networks, _offers(session), alone)


def _offers(session: Session) -> list[Offer]:
    """The schedules of the settings."""
    given = session.settings
    if given.seeds is None:
        return offers(given.templates)
    tasks = [task for network in session.networks.values() for task in network.tasks]
    return offers([*given.templates, *recorded_traces(given.seeds, [t.func for t in tasks])])
