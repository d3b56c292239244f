"""MpDeviceLoader: batches arrive on the device, in order; what goes wrong in the source reaches the consumer."""

import gc
import threading

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import torch_xla
from torch_xla.distributed.parallel_loader import MpDeviceLoader, ParallelLoader


class Failing(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == 6:
            raise KeyError("sample 6 is broken")
        return torch.tensor(float(index))


def loader_threads():
    return [thread for thread in threading.enumerate() if thread.name == "torch_xla_loader"]


def test_batches_arrive_in_order_on_the_device():
    dataset = TensorDataset(torch.arange(10.0), torch.arange(10))
    loader = MpDeviceLoader(DataLoader(dataset, batch_size=4), torch_xla.device())
    assert len(loader) == 3
    for _ in range(2):
        batches = list(loader)
        assert all(t.device.type == "xla" for batch in batches for t in batch)
        assert torch.cat([b[0] for b in batches]).tolist() == list(range(10))
        assert torch.cat([b[1] for b in batches]).dtype == torch.int64


def test_nested_batches_and_other_values_pass():
    source = [{"x": torch.ones(2), "names": ["a", "b"], "pair": (torch.zeros(1), 3), "none": None}]
    (batch,) = MpDeviceLoader(source, "xla:0")
    assert batch["x"].device.type == batch["pair"][0].device.type == "xla"
    assert (batch["names"], batch["pair"][1], batch["none"]) == (["a", "b"], 3, None)


# With workers PyTorch takes ten seconds to let go of the iterator that failed.
@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_an_exception_of_the_dataset_reaches_the_consumer(num_workers):
    loader = MpDeviceLoader(DataLoader(Failing(), batch_size=2, num_workers=num_workers), "xla")
    seen = []
    with pytest.raises(KeyError, match="sample 6 is broken"):
        for batch in loader:
            seen.append(batch.tolist())
    assert seen == [[0, 1], [2, 3], [4, 5]]


def test_an_exception_while_making_the_iterator_reaches_the_consumer():
    def broken():
        raise ValueError("no data")
        yield

    with pytest.raises(ValueError, match="no data"):
        list(MpDeviceLoader(broken(), "xla"))


def test_iteration_stays_ended():
    iterator = iter(MpDeviceLoader([torch.ones(1)], "xla"))
    assert len(list(iterator)) == 1
    assert list(iterator) == []


def test_the_thread_stops_when_the_loop_is_left_early():
    def endless():
        while True:
            yield torch.ones(2)

    for batch in MpDeviceLoader(endless(), "xla"):
        assert batch.tolist() == [1, 1]
        break
    gc.collect()
    for thread in loader_threads():
        thread.join(timeout=60)
    assert loader_threads() == []


def test_closing_wakes_a_consumer_that_waits():
    release = threading.Event()

    def source():
        yield torch.ones(1)
        release.wait(30)

    loader = ParallelLoader(source(), ["xla"])
    batches = loader.per_device_loader("xla")
    assert next(batches).tolist() == [1]
    seen = []
    consumer = threading.Thread(target=lambda: seen.extend(batches))
    consumer.start()
    loader.close()
    consumer.join(timeout=20)
    assert not consumer.is_alive() and seen == []
    assert list(batches) == []
    release.set()


def test_batches_are_moved_ahead_of_their_use():
    taken = []
    has_taken_five = threading.Event()

    def source():
        for i in range(20):
            taken.append(i)
            if len(taken) == 5:
                has_taken_five.set()
            yield torch.full((2,), float(i))

    batches = ParallelLoader(source(), ["xla"], loader_prefetch_size=3, device_prefetch_size=3).per_device_loader("xla")
    next(batches)
    assert has_taken_five.wait(timeout=60)
    # One used, three ready, and one in hand: no further.
    assert len(taken) == 5
    batches.close()


def test_a_process_may_end_while_batches_are_moved(run_python):
    program = """
import torch, torch_xla
from torch_xla.distributed.parallel_loader import MpDeviceLoader
def endless():
    while True:
        yield torch.ones(1000)
iterator = iter(MpDeviceLoader(endless(), "xla"))
print(next(iterator).sum().item())
"""
    assert run_python(program) == "1000.0"


def test_each_batch_cuts_the_graph(compiles):
    compiles()
    total = torch.zeros(1).to("xla")
    for batch in MpDeviceLoader([torch.ones(1)] * 3, "xla"):
        assert torch_xla._XLAC.pending_nodes(0) == 0
        total += batch
    assert total.item() == 3


def test_a_subclass_as_accelerate_writes_it():
    class Wrapper(MpDeviceLoader):
        def __init__(self, dataloader, device):
            super().__init__(dataloader, device)
            self._rng_types = None

        @property
        def dataloader(self):
            return self._loader

    dataloader = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2)
    wrapper = Wrapper(dataloader, torch.device("xla"))
    assert wrapper.dataloader is dataloader
    assert wrapper.dataset is dataloader.dataset, "accelerate's checkpoints read it"
    with pytest.raises(AttributeError, match="no_such_attribute"):
        _ = wrapper.no_such_attribute
    assert [batch[0].tolist() for batch in wrapper] == [[0, 1], [2, 3]]


def test_what_one_device_cannot_do_is_refused():
    with pytest.raises(NotImplementedError, match="2 devices"):
        ParallelLoader([], ["xla:0", "xla:1"])
    with pytest.raises(NotImplementedError, match="input_sharding"):
        MpDeviceLoader([], "xla", input_sharding=object()).__iter__()
    with pytest.raises(ValueError, match="the loader is for xla:0"):
        ParallelLoader([], ["xla:0"]).per_device_loader("xla:1")
