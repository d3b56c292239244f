#include "pjrt/buffer.h"

#include <array>
#include <utility>
#include <vector>

namespace torch_pjrt::pjrt {
namespace {

struct TypeRow {
  DType dtype;
  PJRT_Buffer_Type type;
};

constexpr std::array kTypes{
    TypeRow{DType::kPred, PJRT_Buffer_Type_PRED},     TypeRow{DType::kU8, PJRT_Buffer_Type_U8},
    TypeRow{DType::kU16, PJRT_Buffer_Type_U16},       TypeRow{DType::kU32, PJRT_Buffer_Type_U32},
    TypeRow{DType::kU64, PJRT_Buffer_Type_U64},       TypeRow{DType::kS8, PJRT_Buffer_Type_S8},
    TypeRow{DType::kS16, PJRT_Buffer_Type_S16},       TypeRow{DType::kS32, PJRT_Buffer_Type_S32},
    TypeRow{DType::kS64, PJRT_Buffer_Type_S64},       TypeRow{DType::kF16, PJRT_Buffer_Type_F16},
    TypeRow{DType::kBF16, PJRT_Buffer_Type_BF16},     TypeRow{DType::kF32, PJRT_Buffer_Type_F32},
    TypeRow{DType::kF64, PJRT_Buffer_Type_F64},       TypeRow{DType::kC64, PJRT_Buffer_Type_C64},
    TypeRow{DType::kC128, PJRT_Buffer_Type_C128},     TypeRow{DType::kF8E4M3FN, PJRT_Buffer_Type_F8E4M3FN},
    TypeRow{DType::kF8E5M2, PJRT_Buffer_Type_F8E5M2},
};

// The layout "row-major, no tiles".
class RowMajorLayout {
 public:
  explicit RowMajorLayout(size_t rank) : minor_to_major_(rank) {
    for (size_t i = 0; i < rank; ++i) minor_to_major_[i] = static_cast<int64_t>(rank - 1 - i);
    layout_.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
    layout_.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    layout_.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
    layout_.tiled.minor_to_major = minor_to_major_.data();
    layout_.tiled.minor_to_major_size = rank;
  }
  PJRT_Buffer_MemoryLayout* get() { return &layout_; }

 private:
  std::vector<int64_t> minor_to_major_;
  PJRT_Buffer_MemoryLayout layout_{};
};

size_t rank_of(const Api& api, PJRT_Buffer* buffer) {
  PJRT_Buffer_Dimensions_Args args{};
  args.buffer = buffer;
  api.call(TP_PJRT(PJRT_Buffer_Dimensions), args);
  return args.num_dims;
}

}  // namespace

PJRT_Buffer_Type to_pjrt(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.type;
  }
  TP_CHECK(false, "no PJRT type for ", mlir_name(dtype));
}

DType from_pjrt(PJRT_Buffer_Type type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.dtype;
  }
  throw_error(ErrorCode::kTypeError, "PJRT_Buffer_Type ", static_cast<int>(type), ": PyTorch has no such dtype");
}

Buffer::Buffer(Buffer&& other) noexcept : api_(other.api_), buffer_(std::exchange(other.buffer_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

Buffer::~Buffer() {
  if (buffer_ == nullptr) return;
  PJRT_Buffer_Destroy_Args args{};
  args.buffer = buffer_;
  api_.call_quietly(TP_PJRT(PJRT_Buffer_Destroy), args);
}

TensorType Buffer::type() const {
  PJRT_Buffer_ElementType_Args element{};
  element.buffer = buffer_;
  api_.call(TP_PJRT(PJRT_Buffer_ElementType), element);
  PJRT_Buffer_Dimensions_Args shape{};
  shape.buffer = buffer_;
  api_.call(TP_PJRT(PJRT_Buffer_Dimensions), shape);
  return {from_pjrt(element.type), Dims(shape.dims, shape.dims + shape.num_dims)};
}

Device Buffer::device() const {
  PJRT_Buffer_Device_Args args{};
  args.buffer = buffer_;
  api_.call(TP_PJRT(PJRT_Buffer_Device), args);
  return Device(api_, args.device);
}

size_t Buffer::on_device_size_bytes() const {
  PJRT_Buffer_OnDeviceSizeInBytes_Args args{};
  args.buffer = buffer_;
  api_.call(TP_PJRT(PJRT_Buffer_OnDeviceSizeInBytes), args);
  return args.on_device_size_in_bytes;
}

Event Buffer::ready_event() const {
  PJRT_Buffer_ReadyEvent_Args args{};
  args.buffer = buffer_;
  api_.call(TP_PJRT(PJRT_Buffer_ReadyEvent), args);
  return Event(api_, args.event);
}

Event Buffer::to_host(void* dst, size_t size_bytes) const {
  RowMajorLayout layout(rank_of(api_, buffer_));
  PJRT_Buffer_ToHostBuffer_Args args{};
  args.src = buffer_;
  args.host_layout = layout.get();
  // A null `dst` would ask for the size, and an empty tensor may well have no memory.
  char nothing = 0;
  args.dst = dst == nullptr ? &nothing : dst;
  args.dst_size = size_bytes;
  api_.call(TP_PJRT(PJRT_Buffer_ToHostBuffer), args);
  return Event(api_, args.event);
}

Buffer Buffer::copy_to(const Device& device) const {
  PJRT_Buffer_CopyToDevice_Args args{};
  args.buffer = buffer_;
  args.dst_device = device.raw();
  api_.call(TP_PJRT(PJRT_Buffer_CopyToDevice), args);
  return Buffer(api_, args.dst_buffer);
}

void Buffer::delete_memory() {
  PJRT_Buffer_Delete_Args args{};
  args.buffer = buffer_;
  api_.call(TP_PJRT(PJRT_Buffer_Delete), args);
}

bool Buffer::is_deleted() const {
  PJRT_Buffer_IsDeleted_Args args{};
  args.buffer = buffer_;
  api_.call(TP_PJRT(PJRT_Buffer_IsDeleted), args);
  return args.is_deleted;
}

const void* Buffer::unsafe_pointer() const {
  ready_event().await();
  PJRT_Buffer_UnsafePointer_Args args{};
  args.buffer = buffer_;
  api_.call(TP_PJRT(PJRT_Buffer_UnsafePointer), args);
  return reinterpret_cast<const void*>(args.buffer_pointer);
}

}  // namespace torch_pjrt::pjrt
