"""How the system is balanced: a setting of its own, by command or by the files it was given.

What a command said stays until another command says something else. Until there was one, every
submitted file that has ``balance:`` sets it.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.balance.settings import BalanceSettings, balance_words
from penstock.control.answer_models import BalanceAnswer
from penstock.control.catalog import Catalog
from penstock.control.live_tree import node_tree
from penstock.control.records import BalanceRecord, NodeRecord
from penstock.control.system import System
from penstock.errors import InputError
from penstock.model.settings import Settings, settings_of, values_of


def read_balance(catalog: Catalog) -> BalanceRecord:
    """What holds now."""
    return catalog.balance() or BalanceRecord()


def balance_settings(record: BalanceRecord) -> BalanceSettings:
    """What a record means; it was checked when it was made."""
    return BalanceSettings.of(settings_of(record.settings))


def set_balance(catalog: Catalog, written: Settings) -> BalanceRecord:
    """Has the system balanced as somebody commands; raises what is wrong with it."""
    settings = BalanceSettings.checked(written)
    check_tree(settings, catalog.nodes())
    record = BalanceRecord(values_of(written), "command", at_s=catalog.now_s())
    catalog.set_balance(record)
    catalog.tell("balance", settings.policy, f"by command: {balance_words(settings)}")
    return record


def check_tree(settings: BalanceSettings, nodes: Sequence[NodeRecord]) -> None:
    """Raises if a policy for trees is to balance nodes that form none."""
    if settings.tree is None:
        return
    if node_tree(nodes) is None:
        raise InputError(
            f"the policy {settings.policy} is for a tree, and the nodes form none",
            hint="Give nodes parents: penstock up --nodes a,b:a,c:a.",
        )


def balance_of_file(catalog: Catalog, name: str, written: Settings) -> BalanceRecord | None:
    """What a file that is submitted as ``name`` says of it, checked; None if it says nothing."""
    if not written:
        return None
    check_tree(BalanceSettings.checked(written), catalog.nodes())
    return BalanceRecord(values_of(written), "file", name, catalog.now_s())


def tell_of_file(catalog: Catalog, said: BalanceRecord) -> None:
    """Tells what came of what a submitted file said."""
    now, words = read_balance(catalog), balance_words(balance_settings(said))
    policy = str(said.settings.get("policy", "off"))
    if (now.submission, now.at_s) == (said.submission, said.at_s):
        catalog.tell("balance", policy, f"by {said.submission}: {words}")
    else:
        text = f"{said.submission} says {words}; it stays as commanded"
        catalog.tell("balance", policy, text)


def keep_balance(catalog: Catalog, system: System) -> None:
    """Records what the newest file says, where an older version of Penstock recorded nothing."""
    if catalog.balance() is not None:
        return
    names = {submission.id: submission.name for submission in catalog.submissions()}
    for number in sorted(system.deployments, reverse=True):
        written = system.deployments[number].balance
        if written:
            record = BalanceRecord(values_of(written), "file", names[number], catalog.now_s())
            catalog.offer_balance(record)
            return


def balance_answer(catalog: Catalog) -> BalanceAnswer:
    """What the API says of it."""
    record = read_balance(catalog)
    settings = balance_settings(record)
    said = settings.as_written()
    return BalanceAnswer(
        policy=settings.policy,
        settings={key: said[key] for key in said if key != "policy"},
        set_by=record.set_by,
        submission=record.submission,
        at_s=record.at_s,
        text=balance_words(settings),
    )
