"""`make demo-live`: how fresh results are through an outage, in three ways to run one job."""
