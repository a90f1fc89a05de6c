"""The data pipeline over many clusters: PySpark jobs over Delta tables. The only room that may import Spark."""

import os

# delta-rs prints a page for each try to find a region where there is none; what failed is in the error
os.environ.setdefault("RUST_LOG", "error")
