"""`python -m headgate_spark` is `headgate-run`."""

from headgate_spark.launch.command import main

if __name__ == "__main__":
    main()
