"""An independent audit of what the product says: `python -m audit` in benchmarks/."""

import os

# One process for each core: libraries that start threads of their own would only wait for each other.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
