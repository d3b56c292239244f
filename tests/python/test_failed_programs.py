"""An operator that throws inside a program: what depends on it says so at each read, and nothing else is lost."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from threads import run_in_threads

import torch_xla
from torch_xla import _XLAC

pytestmark = pytest.mark.skipif(not _XLAC.host_kernels_on(), reason="the plugin takes no host calls")

DEVICE = torch.device("xla")
WORDS = "no luck with IndexError"


def on_device(x: torch.Tensor) -> torch.Tensor:
    """A copy whose data is on the device, so that an in-place operator would overwrite it there."""
    x = x.to(DEVICE)
    torch_xla.sync(wait=True)
    return x


def fails_at_a_read(x: torch.Tensor, words: str = WORDS) -> None:
    with pytest.raises(IndexError) as error:
        x.tolist()
    assert str(error.value).startswith(words)
    assert "tp_test::" in str(error.value)


def start() -> None:
    """Starts what is pending. A short program runs, and fails, during its launch; it then stays pending."""
    with contextlib.suppress(IndexError):
        torch_xla.sync()


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    gc.collect()  # a traceback holds on to tensors
    with contextlib.suppress(IndexError):
        torch_xla.sync(wait=True)
    torch_xla.sync(wait=True)
    assert _XLAC.pending_nodes(0) == 0


def long(x: torch.Tensor) -> torch.Tensor:
    """A program that computes this runs on after its launch: the plugin runs those of few operations within it."""
    many = torch.full((1 << 20,), 0.5).to(DEVICE)
    return x + many.sin().cos().exp().sum() * 0


@pytest.fixture(params=["at once", "while others run"])
def wait(request) -> Callable[[torch.Tensor], torch.Tensor]:
    """Makes a program long enough for its failure to come after its launch, or leaves it short."""
    return long if request.param == "while others run" else lambda x: x


def test_only_what_depends_on_it_fails(custom, wait):
    independent, dependent = on_device(torch.ones(4)), on_device(torch.full((4,), 3.0))
    independent.add_(1)
    failing = custom.fail(wait(torch.ones(4, device=DEVICE)), "IndexError")
    dependent.mul_(failing)
    start()
    later = dependent + 1
    for _ in range(2):
        fails_at_a_read(failing)
        fails_at_a_read(dependent)
        fails_at_a_read(later)
        assert independent.tolist() == [2] * 4
    independent.add_(1)
    assert independent.tolist() == [3] * 4
    assert (independent * 2).tolist() == [6] * 4


def test_the_error_is_one_of_the_next_wait_once(custom):
    failing = custom.fail(long(torch.ones(4, device=DEVICE)), "IndexError")
    torch_xla.sync()
    with pytest.raises(IndexError, match=WORDS):
        torch_xla.sync(wait=True)
    torch_xla.sync(wait=True)
    fails_at_a_read(failing)
    torch_xla.sync(wait=True)


def test_a_read_of_another_tensor_leaves_the_error_for_the_wait(custom, wait):
    other = on_device(torch.ones(4)).add_(1)
    failing = custom.fail(wait(torch.ones(4, device=DEVICE)), "IndexError")
    start()
    assert other.tolist() == [2] * 4
    with pytest.raises(IndexError, match=WORDS):
        torch_xla.sync(wait=True)
    fails_at_a_read(failing)


def test_a_retry_succeeds_when_the_cause_is_gone(custom, wait):
    state = on_device(torch.full((4,), 2.0))
    custom.set_failures(1000)
    state.mul_(custom.unlucky(wait(torch.ones(4, device=DEVICE) * 3)))
    start()
    for _ in range(2):
        fails_at_a_read(state, "out of luck")
    custom.set_failures(0)
    assert state.tolist() == [6] * 4
    state.add_(1)
    assert state.tolist() == [7] * 4
    torch_xla.sync(wait=True)


def test_programs_that_read_a_lost_value_before_the_failure_is_known(custom):
    state, other = on_device(torch.full((4,), 2.0)), on_device(torch.ones(4))
    custom.set_failures(1)
    state.mul_(custom.unlucky(long(torch.ones(4, device=DEVICE) * 3)))
    torch_xla.sync()
    for _ in range(3):
        other.add_(1)
        state.add_(1)
        torch_xla.sync()
    with pytest.raises(IndexError, match="out of luck"):
        torch_xla.sync(wait=True)
    assert other.tolist() == [4] * 4
    assert state.tolist() == [9] * 4


def test_a_lost_value_as_the_input_of_a_program_after_the_failure_is_known(custom, wait):
    state = on_device(torch.full((4,), 2.0))
    custom.set_failures(1)
    state.mul_(custom.unlucky(wait(torch.ones(4, device=DEVICE) * 3)))
    with pytest.raises(IndexError, match="out of luck"):
        torch_xla.sync(wait=True)
    other = torch.ones(4, device=DEVICE) + state
    state.add_(1)
    torch_xla.sync(wait=True)
    assert other.tolist() == [7] * 4
    assert state.tolist() == [7] * 4


def test_a_fresh_value_ends_it(custom, wait):
    state = on_device(torch.ones(4))
    state.mul_(custom.fail(wait(torch.ones(4, device=DEVICE)), "IndexError"))
    start()
    fails_at_a_read(state)
    state.copy_(torch.arange(4.0))
    torch_xla.sync(wait=True)
    assert state.add_(1).tolist() == [1, 2, 3, 4]
    torch_xla.sync(wait=True)


def test_training_goes_on_after_a_failed_step(custom, seeded):
    """The step is skipped by loading what was saved before it, as for any failure in the middle of an update."""
    model = torch.nn.Linear(4, 2).to(DEVICE)
    reference = torch.nn.Linear(4, 2)
    reference.load_state_dict({name: value.cpu() for name, value in model.state_dict().items()})
    batches = [torch.randn(3, 4) for _ in range(4)]

    def train(module: torch.nn.Module, device: torch.device | str, fails: bool) -> None:
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for i, batch in enumerate(batches):
            saved = [p.detach().clone() for p in module.parameters()]
            optimizer.zero_grad()
            loss = module(batch.to(device)).square().sum()
            loss.backward()
            try:
                if fails and i == 2:
                    with torch.no_grad():
                        for p in module.parameters():
                            p.mul_(custom.fail(loss.detach(), "IndexError"))
                optimizer.step()
                loss.item()
                torch_xla.sync(wait=True)
            except IndexError:
                assert i == 2
                with torch.no_grad():
                    for p, value in zip(module.parameters(), saved, strict=True):
                        p.copy_(value)
                optimizer.step()

    train(model, DEVICE, fails=True)
    train(reference, "cpu", fails=False)
    for p, expected in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(p.cpu(), expected)


def test_another_threads_tensors_are_unaffected(custom, wait):
    states = [on_device(torch.full((4,), float(i))) for i in range(3)]
    failing: list[Any] = []

    def fail() -> None:
        for _ in range(5):
            x = custom.fail(wait(torch.ones(4, device=DEVICE)), "IndexError")
            fails_at_a_read(x)
            failing.append(x)

    def work(i: int) -> None:
        for k in range(10):
            states[i].add_(1)
            assert states[i].tolist() == [i + k + 1] * 4

    run_in_threads([fail, *(lambda i=i: work(i) for i in range(3))])
    for x in failing:
        fails_at_a_read(x)


def test_a_check_concerns_the_first_reader_alone():
    state = on_device(torch.ones(4))
    state.add_(1)
    torch._assert_async(long(torch.zeros(1, device=DEVICE)))
    torch_xla.sync()
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value"):
        state.tolist()
    assert state.tolist() == [2] * 4
    torch_xla.sync(wait=True)


def test_what_a_run_was_made_from_is_released_when_it_has_succeeded(custom):
    torch_xla.sync(wait=True)
    before = _XLAC.bytes_live(0)
    x = on_device(torch.ones(1 << 18))
    for _ in range(5):
        x = custom.fail(x + 1, "nothing")
        start()
    torch_xla.sync(wait=True)
    assert _XLAC.bytes_live(0) - before == 1 << 20
    assert x[0].item() == 6
    lost = custom.fail(x, "IndexError")
    fails_at_a_read(lost)
    del x, lost
    gc.collect()
    start()
    assert _XLAC.bytes_live(0) == before


def test_numbers_drawn_again_are_the_same(custom, wait):
    torch.manual_seed(3)
    expected = torch.rand(4, device=DEVICE).tolist()
    torch.manual_seed(3)
    drawn = torch.rand(4, device=DEVICE)
    failing = custom.fail(wait(drawn), "IndexError")
    start()
    fails_at_a_read(failing)
    assert drawn.tolist() == expected


SINGULAR = {
    "inv": lambda x: torch.linalg.inv(x),
    "inv of a batch": lambda x: torch.linalg.inv(x.expand(2, 3, 3)),
    "inv, transposed": lambda x: torch.linalg.inv(x.t()),
    "cholesky": lambda x: torch.linalg.cholesky(x - 1),
    "solve": lambda x: torch.linalg.solve(x, torch.ones(3, device=x.device)),
    "lu_factor": lambda x: torch.linalg.lu_factor(x)[0],
    "with a gradient": lambda x: torch.linalg.inv(x.requires_grad_()).detach(),
    "into out=": lambda x: torch.linalg.inv(x, out=torch.empty(3, 3, device=x.device)),
    "into a view": lambda x: torch.linalg.inv(x, out=torch.zeros(2, 3, 3, device=x.device)[1]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_what_a_check_refuses_fails_at_each_read(name, wait):
    with pytest.raises(RuntimeError) as expected:
        SINGULAR[name](torch.zeros(3, 3))
    state = on_device(torch.ones(3)).add_(1)
    result = SINGULAR[name](wait(torch.zeros(3, 3, device=DEVICE)))
    later = result + 1
    for x in (result, later, result):
        with pytest.raises(type(expected.value)) as error:
            x.tolist()
        assert str(error.value).startswith(str(expected.value).split("\n")[0])
    assert state.tolist() == [2] * 3
    state.add_(result[0] if result.dim() == 2 else 1)
    with contextlib.suppress(RuntimeError):
        torch_xla.sync(wait=True)
    result = later = None
    state.copy_(torch.zeros(3))
    assert state.tolist() == [0] * 3


def test_a_retry_of_a_checked_operator_succeeds_when_nothing_is_wrong():
    x = on_device(torch.eye(3) * 2)
    result = torch.linalg.inv(long(x))
    assert result.tolist() == (torch.eye(3) / 2).tolist()
    assert (result + 1).sum().item() == 10.5


def test_what_an_asserts_condition_was_made_from_is_unaffected():
    x = torch.zeros(3, device=DEVICE) + 1
    condition = (x > 2).all()
    torch._assert_async(condition)
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value"):
        x.tolist()
    assert x.tolist() == [1] * 3
    assert condition.item() is False
