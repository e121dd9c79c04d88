"""`python -m headgate_spark.runtime`: started by the JVM or by `headgate-run`, never by a person."""

from headgate_spark.runtime.main import main

main()
