import subprocess
import sys

import torch

from weakspot.backends.torchvision_operators import OPERATORS, declare_torchvision_operators

SCRIPT = """
from weakspot.backends.torchvision_operators import declare_torchvision_operators
first = declare_torchvision_operators()
assert declare_torchvision_operators() == first
import torchvision
from torchvision.transforms import InterpolationMode
print(first, torchvision.extension._has_ops())
"""


def test_declare_torchvision_operators__torchvision_imports_in_a_fresh_process():
    done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    declared, has_operators = done.stdout.split()
    assert (declared == "True") == (has_operators == "False")


def test_declare_torchvision_operators__names_exist_afterwards():
    declare_torchvision_operators()
    assert all(hasattr(torch.ops.torchvision, name) for name in OPERATORS)
