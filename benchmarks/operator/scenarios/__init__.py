"""What is measured of the operator, one file for each kind of situation."""
