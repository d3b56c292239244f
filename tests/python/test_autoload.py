"""`import torch` alone gives the device xla, cheaply and without starting a plugin."""

import pytest


def test_import_torch_alone_gives_the_device(run_python):
    assert run_python("import torch; print((torch.ones(2, device='xla') + 1).tolist())") == "[2.0, 2.0]"


def test_import_torch_xla_first_works(run_python):
    assert run_python("import torch_xla, torch; print(torch.xla.device_count() >= 1)") == "True"


def test_import_starts_no_client(run_python):
    assert run_python("import torch, torch_xla; print(torch_xla._XLAC.is_client_started())") == "False"


def test_autoload_can_be_turned_off(run_python):
    code = "import sys, torch; print('torch_xla' in sys.modules, hasattr(torch, 'xla'))"
    assert run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "False False"


@pytest.mark.slow
def test_autoload_adds_at_most_100_ms_to_import_torch(run_python):
    # Processor time, which other processes of the machine do not lengthen; the best of five, for a cold cache.
    code = """
import torch, time
start = time.process_time()
torch._import_device_backends()
print(time.process_time() - start)
"""
    assert min(float(run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")) for _ in range(5)) <= 0.100
