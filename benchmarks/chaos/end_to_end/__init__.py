"""A generator, a real broker, a governed job with state and a sink whose every answer is known, under faults."""
