"""The way to the driver's JVM: a Py4J gateway that takes calls from whoever has its token."""

from __future__ import annotations

from typing import Any

from headgate_spark.engine.shim import DriverJvm


def connect(port: int, token: str) -> DriverJvm:
    """Return the JVM that listens at a port of this machine."""
    from py4j.java_gateway import GatewayParameters, JavaGateway

    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway: Any = JavaGateway(gateway_parameters=parameters)
    return DriverJvm(gateway.jvm)
