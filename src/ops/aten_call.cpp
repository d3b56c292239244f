#include "ops/aten_call.h"

#include "ops/host_call.h"
#include "ops/promotion.h"

namespace torch_pjrt {

using lazy::Argument;
using lazy::ScalarRef;
using lazy::TensorRef;
using stablehlo::Value;
using stablehlo::Values;
using Use = lazy::Schema::Use;

namespace {

class CallWriter {
 public:
  explicit CallWriter(LoweringContext& ctx)
      : ctx_(ctx), signature_(ctx.signature()), call_(ctx.b, ctx.signature().schema->operator_name) {}

  Values run() {
    add_arguments();
    for (const lazy::OutputSpec& output : signature_.outputs) {
      if (output.is_defined) {
        call_.result(output.type);
      } else {
        call_.undefined_result();
      }
    }
    return call_.emit();
  }

  Values run_check() {
    add_arguments();
    call_.emit();
    return {ctx_.b.constant(true, DType::kPred)};
  }

 private:
  void add_arguments() {
    for (size_t i = 0; i < signature_.arguments.size(); ++i) {
      if (signature_.entry->random && signature_.schema->argument_names[i] == "generator") {
        call_.generator(ctx_.seed(), ctx_.offset());
        continue;
      }
      add(signature_.arguments[i], signature_.schema->uses.at(i));
    }
  }

  void add(const Argument& argument, Use use) {
    switch (argument.kind) {
      case Argument::Kind::kAttribute:
        call_.attribute(argument.attribute);
        return;
      case Argument::Kind::kTensorList:
        call_.list(argument.tensors.size());
        [[fallthrough]];
      case Argument::Kind::kTensor:
        for (const TensorRef& ref : argument.tensors) add(ref, use);
        return;
      case Argument::Kind::kScalarList:
        call_.list(argument.scalars.size());
        [[fallthrough]];
      case Argument::Kind::kScalar:
        for (const ScalarRef& ref : argument.scalars) call_.number(ctx_.read(ref, number_dtype(ref.kind)));
        return;
    }
  }

  void add(const TensorRef& ref, Use use) {
    if (use == Use::kOut) {
      call_.empty(ref.dtype);
    } else if (ref.source == TensorRef::Source::kNone) {
      call_.none();
    } else if (ref.is_wrapped_number) {
      call_.wrapped_number(ctx_.read(ref));
    } else {
      const bool is_operand = ref.source == TensorRef::Source::kOperand;
      call_.strided(ctx_.read(ref), is_operand ? signature_.operand_strides.at(ref.index) : Dims(),
                    use == Use::kUpdate);
    }
  }

  LoweringContext& ctx_;
  const lazy::Signature& signature_;
  HostCall call_;
};

Values lower_aten_call(LoweringContext& ctx) { return CallWriter(ctx).run(); }
Values lower_aten_check(LoweringContext& ctx) { return CallWriter(ctx).run_check(); }

}  // namespace

const OpEntry& aten_call_entry() {
  static const OpEntry entry{"", lower_aten_call};
  return entry;
}

const OpEntry& aten_random_call_entry() {
  static const OpEntry entry = [] {
    OpEntry random{"", lower_aten_call};
    random.random = true;
    return random;
  }();
  return entry;
}

const OpEntry& aten_check_entry() {
  static const OpEntry entry{"", lower_aten_check};
  return entry;
}

bool is_aten_call(const OpEntry& entry) {
  return &entry == &aten_call_entry() || &entry == &aten_random_call_entry() || &entry == &aten_check_entry();
}

}  // namespace torch_pjrt
