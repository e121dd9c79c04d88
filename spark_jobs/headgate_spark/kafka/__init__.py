"""What the driver asks of Kafka itself, by the client that the connector has brought into the JVM."""
