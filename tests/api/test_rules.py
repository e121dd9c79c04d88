"""Every refusal of the semantics: by `validate`, and by Kubernetes' own code with the same words."""

from __future__ import annotations

import pytest

from headgate.api.rules import RULES
from headgate.api.validation import validate
from support.api_server import ApiServer
from support.manifests import Manifest, application, query, source
from support.refusals import REFUSALS, Refusal

MESSAGES = {rule.id: rule.message for rule in RULES}
BY_TITLE = pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.title)

SINGLE_BATCH = {"interval": "1s", "intervalDuringBacklog": "0s"}
LONG = {"interval": "5s", "intervalDuringBacklog": "2m"}
ACCEPTED: tuple[tuple[str, Manifest], ...] = (
    ("the least there is", application()),
    (
        "a driver that does all the work itself",
        application(sparkConf={"spark.master": "local[2]", "spark.driver.host": "127.0.0.1"}),
    ),
    ("interval of 10ms", application(query(checkpoint={"interval": "10ms"}))),
    ("backlog interval of 0s", application(query(checkpoint=SINGLE_BATCH))),
    ("backlog interval alone", application(query(checkpoint={"intervalDuringBacklog": "10ms"}))),
    (
        "backlog interval that equals interval",
        application(query(checkpoint={"interval": "60s", "intervalDuringBacklog": "1m"})),
    ),
    (
        "re-entry at the threshold",
        application(query(source(backlog={"watermarkLag": "5m"}), backlog={"reentry": {"above": "300s"}})),
    ),
    ("drift of 0s", application(query(source(alignment={"group": "g", "maxDrift": "0s"})))),
    ("fraction of a record per second", application(query(source(rateLimit={"recordsPerSecond": 0.001})))),
    (
        "rate with a longer backlog interval",
        application(query(source(rateLimit={"recordsPerSecond": 5}), checkpoint=LONG)),
    ),
    (
        "records per batch lifted in a backlog",
        application(
            query(
                source(rateLimit={"recordsPerCheckpoint": 5, "duringBacklog": "Unlimited"}), checkpoint=LONG
            )
        ),
    ),
    (
        "other records per batch in a backlog",
        application(
            query(
                source(rateLimit={"recordsPerCheckpoint": 5, "duringBacklog": {"recordsPerCheckpoint": 120}}),
                checkpoint=LONG,
            )
        ),
    ),
    (
        "rate lifted for the single batch",
        application(
            query(
                source(rateLimit={"recordsPerSecond": 5, "duringBacklog": "Unlimited"}),
                checkpoint=SINGLE_BATCH,
            )
        ),
    ),
    ("chain of three", application(query(source("a"), source("b", after="a"), source("c", after="b")))),
)


@BY_TITLE
def test_a_refusal_names_rule_place_and_remedy(refusal: Refusal) -> None:
    refused, findings = validate(refusal.manifest)

    assert refused is None
    assert [(finding.rule, finding.path) for finding in findings if finding.rule] == [
        (refusal.rule, refusal.path)
    ]
    assert findings[0].message.startswith(MESSAGES[refusal.rule])


@BY_TITLE
def test_kubernetes_refuses_in_the_same_words(refusal: Refusal, kubernetes: ApiServer) -> None:
    answer = kubernetes.create(refusal.manifest)

    assert MESSAGES[refusal.rule] in answer.text


@pytest.mark.parametrize(
    "manifest", [manifest for _, manifest in ACCEPTED], ids=[title for title, _ in ACCEPTED]
)
def test_what_stands_at_the_edge_of_a_rule_is_accepted_by_both(
    manifest: Manifest, kubernetes: ApiServer
) -> None:
    accepted, findings = validate(manifest)

    assert accepted is not None, findings
    assert kubernetes.create(manifest).text == ""


def test_every_rule_has_a_case_that_breaks_it() -> None:
    assert {refusal.rule for refusal in REFUSALS} == set(MESSAGES)


def test_rules_have_ids_of_their_own() -> None:
    assert len(MESSAGES) == len(RULES)


def test_each_source_that_breaks_a_rule_is_named() -> None:
    manifest = application(query(source("a", after="x"), source("b"), source("c", after="y")))

    _, findings = validate(manifest)

    assert [finding.path for finding in findings] == [
        "spec.queries[q].sources[a].after",
        "spec.queries[q].sources[c].after",
    ]


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ([], "'histroy' is not listed"),
        (["history"], "'histroy' is not one of history; did you mean history?"),
        (["a", "b"], "'histroy' is not one of a, b"),
        ([*"abcdefg"], "'histroy' is not one of a, b, c, d, e and 2 more"),
    ],
)
def test_a_name_that_is_wrong_is_told_with_those_that_there_are(others: list[str], told: str) -> None:
    """Not its own name: a source cannot come after itself."""
    live = source("histroyx", after="histroy")
    _, (finding, *_) = validate(application(query(live, *map(source, others))))

    assert finding.message == (
        f"after must name a listed source of the same query; list that source, or correct the name: {told}"
    )


def test_a_rule_is_silent_about_a_malformed_value() -> None:
    _, findings = validate(application(query(checkpoint={"interval": 5, "intervalDuringBacklog": "1s"})))

    assert [finding.rule for finding in findings] == [None]


def test_sources_that_wait_for_each_other_are_named_in_order() -> None:
    manifest = application(
        query(source("a", after="c"), source("b", after="a"), source("c", after="b"), source("d", after="a"))
    )

    _, findings = validate(manifest)

    assert [(finding.rule, finding.path) for finding in findings] == [
        ("after-cycle", "spec.queries[q].sources[a].after")
    ]
    assert findings[0].message.startswith("a after c after b after a: none of them would ever start")


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (application(query(), query()), "spec.queries[q].name"),
        (application(query(source(), source())), "spec.queries[q].sources[s].name"),
    ],
)
def test_a_name_given_twice_is_refused_by_both(manifest: Manifest, path: str, kubernetes: ApiServer) -> None:
    _, findings = validate(manifest)

    assert [(finding.rule, finding.path) for finding in findings] == [("name-twice", path)]
    assert "Duplicate value" in kubernetes.create(manifest).text
