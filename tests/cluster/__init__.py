"""Tests on real nodes: a package, since its nodes are to be gone when its last test has run."""
