"""Libraries that everything is tested, built and packed with: locks by version and digest, and what checks them."""
