"""`headgate-run`: runs an unmodified PySpark script with the runtime around it."""
