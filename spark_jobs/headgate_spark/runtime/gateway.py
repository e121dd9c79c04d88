"""The way from the planner's process to the JVM, over Py4J."""

from __future__ import annotations

import logging
from typing import Any

from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway

from headgate_spark.engine.shim import DriverJvm

MOST_IDLE = 4
"""Connections that are kept for whoever calls next; more calls at once are rare, but where many queries start."""


class Client(GatewayClient):  # type: ignore[misc]  # Py4J has no types
    """Closes connections that nobody uses, but for a few.

    Each has a thread in the JVM, and Py4J's own client keeps as many as were ever in use at once for good.
    """

    def _give_back_connection(self, connection: Any) -> None:
        if len(self.deque) < MOST_IDLE:
            super()._give_back_connection(connection)
        else:
            connection.close()


class _Gateway(JavaGateway):  # type: ignore[misc]
    def _create_gateway_client(self) -> Client:
        return Client(gateway_parameters=self.gateway_parameters)


def connect(port: int, token: str) -> DriverJvm:
    """Return the JVM whose gateway listens at a port of this machine."""
    logging.getLogger().addFilter(_is_news)
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    return DriverJvm(_Gateway(gateway_parameters=parameters).jvm)


def _is_news(record: logging.LogRecord) -> bool:
    """Py4J logs by the root logger, with a traceback, whatever it fails with, and raises it, too.

    A JVM that ends in the middle of a call is no error: whoever has called says what there is to say.
    """
    return record.module != "java_gateway"
