"""Recording from several threads, long chains, and release without recursion."""

import gc
import threading

import pytest
import torch
from threads import run_in_threads
from torch import nn

import torch_xla


def test_threads_record_cut_and_read_at_once():
    results = {}

    def work(k):
        x = torch.full((8,), float(k)).to("xla")
        for i in range(30):
            x = x * 1.0 + 1
            if i % 10 == k:
                torch_xla.sync()
        results[k] = x.tolist()

    run_in_threads([lambda k=k: work(k) for k in range(4)])
    assert results == {k: [k + 30.0] * 8 for k in range(4)}


def test_threads_share_parameters():
    model = nn.Linear(16, 16).to("xla")
    sums = []

    def forward_and_backward():
        for _ in range(10):
            x = torch.ones(4, 16, device="xla")
            sums.append(torch.autograd.grad(model(x).sum(), model.weight)[0].sum())

    run_in_threads([forward_and_backward] * 3)
    assert [s.item() for s in sums] == [4 * 16 * 16.0] * 30


def test_backward_from_several_threads():
    parameters = [torch.ones(4, device="xla", requires_grad=True) for _ in range(4)]
    run_in_threads([lambda p=p: (p * 3).sum().backward() for p in parameters])
    assert [p.grad.tolist() for p in parameters] == [[3] * 4] * 4


def test_hooks_run_while_recording_on_autograd_threads():
    seen = []
    x = torch.ones(3, device="xla", requires_grad=True)
    x.register_hook(lambda g: seen.append(g.sum().item()))
    (x * 5).sum().backward()
    assert seen == [15]


def test_a_backward_runs_on_the_thread_that_asks_for_it():
    ran_on = []

    def forward_and_backward():
        x = torch.ones(3, device="xla", requires_grad=True)
        x.register_hook(lambda g: ran_on.append(threading.get_ident()))
        (x * 5).sum().backward()
        assert x.grad.tolist() == [5, 5, 5]
        ran_on.append(threading.get_ident())

    forward_and_backward()
    run_in_threads([forward_and_backward])
    assert ran_on[0] == ran_on[1] != ran_on[2] == ran_on[3]


def test_a_backward_on_a_thread_of_autograd_when_the_program_wants_that():
    ran_on = []
    inner = torch.ones(3, device="xla", requires_grad=True)

    def backward_within_backward(g):
        with torch.enable_grad():
            (inner * 2).sum().backward()
        ran_on.append(threading.get_ident())

    x = torch.ones(3, device="xla", requires_grad=True)
    x.register_hook(backward_within_backward)
    with torch.autograd.set_multithreading_enabled(True):
        (x * 5).sum().backward()
    assert ran_on != [threading.get_ident()]
    assert x.grad.tolist() == [5, 5, 5] and inner.grad.tolist() == [2, 2, 2]


@pytest.mark.slow
def test_a_chain_of_50_000_operators_records_runs_and_is_released():
    x = torch.zeros(2).to("xla")
    y = x
    for _ in range(50_000):
        y = y + 1
    assert y.tolist() == [50_000, 50_000]
    z = x
    for _ in range(50_000):
        z = z * 1.0
    del z
    gc.collect()
    torch_xla.sync()
    assert x.tolist() == [0, 0]


def test_releasing_a_deep_pending_chain_does_not_recurse():
    def release_in_a_small_stack():
        y = torch.zeros(2, device="xla")
        for _ in range(8_000):
            y = y + 1
        del y

    previous = threading.stack_size(256 * 1024)
    try:
        run_in_threads([release_in_a_small_stack])
    finally:
        threading.stack_size(previous)
    torch_xla.sync()
