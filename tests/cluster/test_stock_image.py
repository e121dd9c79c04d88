"""A stock Spark image needs nothing but the jar: its own Python is enough, whatever the job is written in."""

import pytest

from support.driver import QUICK_START
from support.pods import RESTRICTED, create_pod, wait_for
from support.stock_image import LANGUAGES, command

pytestmark = pytest.mark.node

CONF = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "600m",
    "spark.driver.defaultJavaOptions": QUICK_START,
    "spark.headgate.interval": "500ms",
}
IMAGE = "headgate.test/stock-spark-jobs:1"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_job_with_only_the_jar_added_is_governed_on_a_stock_image(nodes, language):
    namespace = nodes.namespace()
    create_pod(
        nodes,
        namespace,
        language,
        IMAGE,
        node=nodes.nodes[0].name,
        command=command(language, CONF),
        securityContext=RESTRICTED,
        volumeMounts=[{"name": "scratch", "mountPath": "/tmp"}],
    )
    try:
        wait_for(nodes, namespace, language, "jsonpath={.status.phase}=Succeeded")
    finally:
        log = nodes.kubectl("logs", language, "-n", namespace)
        print(log[-6000:])
    assert " batches" in log  # of a trigger of an hour


def test_it_has_no_pip_and_no_package_of_python(nodes):
    namespace = nodes.namespace()
    names = ("pip", "structlog", "pyspark", "headgate_spark")
    ask = f"import importlib.util as u; print([name for name in {names} if u.find_spec(name)])"
    there = nodes.nodes[0].name
    create_pod(nodes, namespace, "bare", IMAGE, node=there, command=["python3", "-c", ask])
    wait_for(nodes, namespace, "bare", "jsonpath={.status.phase}=Succeeded")
    assert nodes.kubectl("logs", "bare", "-n", namespace).strip() == "[]"
