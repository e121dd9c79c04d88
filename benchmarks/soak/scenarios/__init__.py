"""What is run for long."""
