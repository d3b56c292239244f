"""See torch_xla.runtime and torch_xla.core.xla_model."""

from torch_xla.core.xla_model import broadcast_master_param
from torch_xla.runtime import (
    addressable_device_count,
    device_type,
    global_device_count,
    global_ordinal,
    local_device_count,
    local_ordinal,
    process_count,
    process_index,
    set_device_type,
    using_pjrt,
    world_size,
)

__all__ = [
    "addressable_device_count",
    "broadcast_master_param",
    "device_type",
    "global_device_count",
    "global_ordinal",
    "local_device_count",
    "local_ordinal",
    "process_count",
    "process_index",
    "set_device_type",
    "using_pjrt",
    "world_size",
]
