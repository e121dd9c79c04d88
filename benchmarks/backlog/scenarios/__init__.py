"""The scenarios, one module each; `catalog` lists them."""
