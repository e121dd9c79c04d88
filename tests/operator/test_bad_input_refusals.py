"""What `kubectl apply` says to a resource that breaks a rule: the line of the API server, word for word."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping

import pytest

from headgate.api.rules import RULES
from support.cluster import Cluster, KubectlError
from support.refusals import REFUSALS, Refusal

pytestmark = pytest.mark.cluster

MESSAGES = {rule.id: rule.message for rule in RULES}
ANSWER = re.compile(r'SparkApplication\.headgate\.dev "([^"]+)" is invalid: (.*)')


def named(refusal: Refusal) -> str:
    """A name for the resource, by its place in the table."""
    return f"refused-{REFUSALS.index(refusal)}"


@pytest.fixture(scope="module")
def answers(control_plane: Cluster) -> Mapping[str, str]:
    """What the API server says to each resource, asked for all of them at once."""
    manifests = [copy.deepcopy(refusal.manifest) for refusal in REFUSALS]
    for manifest, refusal in zip(manifests, REFUSALS, strict=True):
        manifest["metadata"] = {"name": named(refusal)}
    documents = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    with pytest.raises(KubectlError) as told:
        control_plane.kubectl(
            "apply", "--dry-run=server", "-n", control_plane.namespace(), "-f", "-", input=documents
        )
    return dict(ANSWER.findall(str(told.value)))


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.title)
def test_a_refusal_is_the_field_its_value_and_the_message_of_its_rule(
    refusal: Refusal, answers: Mapping[str, str]
) -> None:
    said = answers[named(refusal)]

    assert re.fullmatch(
        rf'spec[\w.\[\]]+: Invalid value: ("[^"]*": )?{re.escape(MESSAGES[refusal.rule])}', said
    )
