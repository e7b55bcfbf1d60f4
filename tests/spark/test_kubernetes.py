"""Nodes on Kubernetes, as far as that can be seen without a cluster: Spark builds the pod."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.spark.cluster_nodes import cluster_settings

MANUAL = Path(__file__).parents[2] / "docs" / "operations.md"
MASTER = "k8s://https://127.0.0.1:6443"


def written_in_the_manual() -> dict[str, str]:
    """The settings for Kubernetes that the manual shows."""
    text = MANUAL.read_text()
    block = text[text.index("# spark/spark-defaults.conf") :]
    pairs = re.findall(r"^(spark\.\S+)\s+(\S+)$", block[: block.index("```")], re.MULTILINE)
    return dict(pairs)


@pytest.fixture
def pod(session: SparkSession) -> Any:
    """The pod that Spark would ask Kubernetes for, for the executor of node ``a``."""
    java: Any = session.sparkContext._jvm
    conf = java.org.apache.spark.SparkConf(False)
    for key, value in (
        written_in_the_manual() | cluster_settings(MASTER, "a", 2, 512 << 20)
    ).items():
        conf.set(key, value)
    conf.set("spark.app.id", "spark-1").set("spark.app.name", "a").set("spark.master", MASTER)
    conf.set("spark.kubernetes.driver.pod.name", "driver").set("spark.driver.port", "7078")
    none = java.scala.Option.apply(None)
    k8s = java.org.apache.spark.deploy.k8s
    wanted = k8s.KubernetesConf.createExecutorConf(conf, "1", "spark-1", none, 0)
    builder = java.org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBuilder()
    profiles = getattr(getattr(java.org.apache.spark.resource, "ResourceProfile$"), "MODULE$")
    profile = profiles.getOrCreateDefaultProfile(conf)
    known = getattr(getattr(java.org.apache.spark.internal.config, "package$"), "MODULE$")
    secret_file = known.AUTH_SECRET_FILE_EXECUTOR()
    security = java.org.apache.spark.SecurityManager(conf, none, secret_file)
    client = java.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
    return builder.buildFromFeatures(wanted, security, client, profile).pod()


def test_the_pod_is_where_the_node_belongs(pod: Any) -> None:
    assert pod.pod().getSpec().getNodeSelector().get("penstock") == "a"


def test_it_sees_the_folder_of_the_system(pod: Any) -> None:
    mounts = {one.getMountPath() for one in pod.container().getVolumeMounts()}
    assert "/penstock" in mounts


def test_it_has_what_the_node_may_use(pod: Any) -> None:
    container = pod.container()
    requests = container.getResources().getRequests()
    assert requests.get("cpu").getAmount() == "2"
    assert container.getImage() == "registry.example/penstock:latest"
