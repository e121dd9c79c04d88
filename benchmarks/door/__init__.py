"""`make bench-door`: what it costs to govern a job by one jar and one property, and what it leaves behind.

The jobs are ordinary ones and are started as anybody starts them; governed and plain ones differ in the jar and the
property. How long a question to the planner takes is measured inside the JVM, by an agent (`agent/Watch.java`).
"""
