"""Saving, loading, pickling and copying: values, geometry and sharing are kept, as for tensors on other devices."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

import torch_xla.core.xla_model as xm
from torch_xla.utils import serialization

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
]


def round_trip(obj, save=None, **load):
    file = io.BytesIO()
    torch.save(obj, file, **(save or {}))
    file.seek(0)
    return torch.load(file, **load)


def legacy(obj, **load):
    return round_trip(obj, {"_use_new_zipfile_serialization": False}, **load)


def unpickled(obj):
    return pickle.loads(pickle.dumps(obj))


WAYS = [round_trip, legacy, unpickled, copy.deepcopy]


def sample(dtype):
    return torch.arange(-6, 6).view(3, 4).to(dtype)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_and_dtype(way, dtype):
    x = sample(dtype).to("xla")
    y = way(x)
    assert (y.device.type, y.dtype, y.shape) == ("xla", dtype, x.shape)
    assert torch.equal(y.cpu(), sample(dtype))


# Plain pickle loses sharing on the CPU too.
@pytest.mark.parametrize("way", [round_trip, legacy, copy.deepcopy])
def test_views_of_one_storage_share_one_again(way):
    base = torch.arange(12.0, device="xla")
    tensors = [base, base[2:8].view(2, 3), base.view(3, 4).t()]
    a, b, c = way(tensors)
    assert a.untyped_storage()._cdata == b.untyped_storage()._cdata == c.untyped_storage()._cdata
    assert [(t.stride(), t.storage_offset()) for t in (a, b, c)] == [(t.stride(), t.storage_offset()) for t in tensors]
    a.mul_(10)
    expected = torch.arange(12.0) * 10
    assert torch.equal(b.cpu(), expected[2:8].view(2, 3))
    assert torch.equal(c.cpu(), expected.view(3, 4).t())
    assert torch.equal(base.cpu(), torch.arange(12.0)), "the copy must not write to the original"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.view(2, 3, 4),
        lambda x: x[5],
        lambda x: x[:0].view(0, 3),
        lambda x: x.view(4, 6).t(),
        lambda x: x.view(2, 3, 4)[:, 1:, ::2],
        lambda x: x.view(1, 2, 3, 4).to(memory_format=torch.channels_last),
        lambda x: x[:2].expand(3, 2),
    ],
    ids=["whole", "scalar", "empty", "transposed", "sliced", "channels_last", "expanded"],
)
def test_geometry(way, view):
    base = torch.arange(24.0)
    expected, original = way(view(base)), view(base.to("xla"))
    copied = way(original)
    assert (copied.shape, copied.stride(), copied.storage_offset()) == (
        expected.shape,
        expected.stride(),
        expected.storage_offset(),
    )
    assert copied.untyped_storage().nbytes() == expected.untyped_storage().nbytes()
    assert torch.equal(copied.cpu(), expected)


@pytest.mark.parametrize("way", WAYS)
def test_parameters_and_requires_grad(way):
    parameter = nn.Parameter(torch.ones(3, device="xla"))
    copied = way(parameter)
    assert isinstance(copied, nn.Parameter) and copied.requires_grad
    leaf = way(torch.ones(2, device="xla", requires_grad=True))
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [2, 2]


def test_deepcopy_copies_the_gradient_and_memo():
    x = torch.ones(3, device="xla", requires_grad=True)
    (x * 4).sum().backward()
    first, second = copy.deepcopy([x, x])
    assert first is second
    assert first.grad.tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_map_location_both_ways():
    x = torch.arange(6.0).view(2, 3).t()
    on_xla = round_trip({"x": x, "y": [x[1:]]}, map_location="xla")
    assert on_xla["x"].device == torch.device("xla:0") and on_xla["y"][0].device.type == "xla"
    assert on_xla["x"].untyped_storage()._cdata == on_xla["y"][0].untyped_storage()._cdata
    assert torch.equal(on_xla["x"].cpu(), x)
    back = round_trip(on_xla, map_location="cpu")
    assert back["x"].device.type == "cpu" and torch.equal(back["x"], x)
    assert back["x"].untyped_storage()._cdata == back["y"][0].untyped_storage()._cdata
    by_function = round_trip(on_xla, map_location=lambda storage, location: storage)
    assert by_function["x"].device.type == "cpu"


def test_loading_compiles_nothing(compiles):
    state = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 7)).state_dict()
    before = compiles()
    loaded = round_trip(state, map_location="xla")
    round_trip(loaded)
    assert all(torch.equal(loaded[name].cpu(), value) for name, value in state.items())
    assert compiles() == before


def test_a_pending_tensor_can_be_saved():
    x = torch.arange(4.0, device="xla") + 1
    assert round_trip(x).tolist() == [1, 2, 3, 4]


def test_a_module_and_its_optimizer():
    model = nn.Linear(3, 2).to("xla")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    x = torch.ones(4, 3, device="xla")
    model(x).sum().backward()
    optimizer.step()
    state = round_trip({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, map_location="cpu")
    other = nn.Linear(3, 2).to("xla")
    resumed = torch.optim.AdamW(other.parameters(), lr=0.1)
    other.load_state_dict(state["model"])
    resumed.load_state_dict(state["optimizer"])
    for m, o in ((model, optimizer), (other, resumed)):
        o.zero_grad()
        m(x).sum().backward()
        o.step()
    assert torch.equal(model.weight.cpu(), other.weight.cpu())


def test_saved_files_load_without_the_device(tmp_path):
    base = torch.arange(6.0, device="xla")
    path = tmp_path / "data.pt"
    for save, load in ((xm.save, torch.load), (serialization.save, serialization.load)):
        save({"base": base, "view": base[1:3], "n": 3}, path)
        loaded = load(path)
        assert loaded["base"].device.type == loaded["view"].device.type == "cpu"
        assert loaded["base"].untyped_storage()._cdata == loaded["view"].untyped_storage()._cdata
        assert loaded["view"].tolist() == [1, 2] and loaded["n"] == 3


def test_storages_have_identity_and_bytes():
    x = torch.arange(4, dtype=torch.int16, device="xla")
    storage = x.untyped_storage()
    assert storage.data_ptr() == x.view(2, 2).untyped_storage().data_ptr() != 0
    assert (storage.nbytes(), storage.device) == (8, torch.device("xla:0"))
    assert storage.tolist() == [0, 0, 1, 0, 2, 0, 3, 0]
    assert storage[2] == 1
    assert storage.cpu().tolist() == storage.tolist()
    assert "device=xla:0) of size 8" in repr(storage)
    with pytest.raises(NotImplementedError, match="slice of an xla storage"):
        storage[1:3]


def test_storages_are_made_copied_and_resized():
    storage = torch.UntypedStorage(8, device="xla")
    assert (storage.nbytes(), storage.device.type) == (8, "xla")
    assert torch.UntypedStorage([1, 2, 3], device="xla").tolist() == [1, 2, 3]
    storage.copy_(torch.UntypedStorage([1, 0, 0, 0, 2, 0, 0, 0]))
    x = torch.empty(0, dtype=torch.int32, device="xla").set_(storage, 0, (2,), (1,))
    assert x.tolist() == [1, 2]
    twin = storage.clone()
    x.zero_()
    assert twin.tolist() == [1, 0, 0, 0, 2, 0, 0, 0] and storage.tolist() == [0] * 8
    twin.resize_(4)
    assert twin.nbytes() == 4 and twin.tolist() == [1, 0, 0, 0]
    twin.resize_(0)
    assert twin.nbytes() == 0
    assert storage.to(device="cpu").device.type == "cpu"
    assert storage.cpu().to(device="xla").device.type == "xla"
