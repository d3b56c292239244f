"""How a process ends."""

import pytest

AFTER_BACKWARD = """
import torch, torch_xla
x = torch.ones(4, device="xla", requires_grad=True)
(torch.tanh(x) * 2).sum().backward()
"""


@pytest.mark.parametrize("attempt", range(4))
def test_a_process_may_end_right_after_a_backward(run_python, attempt):
    run_python(AFTER_BACKWARD)


def test_a_process_that_recorded_a_recomputation_last(run_python):
    run_python(
        AFTER_BACKWARD.replace(
            "(torch.tanh(x) * 2)", "torch.utils.checkpoint.checkpoint(torch.tanh, x, use_reentrant=False)"
        )
    )
