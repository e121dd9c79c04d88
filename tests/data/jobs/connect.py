"""A job that asks for Spark Connect."""

from pyspark.sql import SparkSession

SparkSession.builder.remote("sc://127.0.0.1:1").getOrCreate()
