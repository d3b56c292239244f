"""Starts the lowering of an ATen operator: ./dev new-op aten::hypot --family binary

Prints the operator's schemas and what PyTorch already does with it, then adds to src/ops/<family>.cpp a lowering that
reads every argument and declines (so the operator keeps falling back until you write it) and its row in the family's
table. Without --family it only reports.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import torch

OPS = Path(__file__).resolve().parent.parent / "src" / "ops"
# How a lowering asks for an argument of each schema type; numbers are asked for where the result's dtype is known.
READERS = {
    "Tensor": 'ctx.tensor("{name}")',
    "Optional[Tensor]": 'ctx.optional_tensor("{name}")',
    "List[Tensor]": 'ctx.tensors("{name}")',
    "List[Optional[Tensor]]": 'ctx.optional_tensors("{name}")',
    "number": 'ctx.operand("{name}", dtype)',
    "float": 'ctx.operand("{name}", dtype)',
    "int": 'ctx.integer("{name}")',
    "Optional[int]": 'ctx.integer("{name}", 0)',
    "bool": 'ctx.flag("{name}")',
    "str": 'ctx.string("{name}")',
    "Optional[str]": 'ctx.string("{name}")',
    "List[int]": 'ctx.ints("{name}")',
    "Optional[List[int]]": 'ctx.ints("{name}")',
    "List[bool]": 'ctx.bools("{name}")',
}


def full_name(schema: torch._C.FunctionSchema) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def schemas_of(name: str) -> list[torch._C.FunctionSchema]:
    """Every overload of an operator and of its in-place form."""
    schemas = [s for base in (name, name + "_") for s in torch._C._jit_get_schemas_for_operator(base)]
    # TorchScript's own overloads, such as aten::add.t over lists, are not the dispatcher's.
    found = [s for s in schemas if torch._C._dispatch_has_kernel(full_name(s))]
    if not found:
        sys.exit(f"{name}: PyTorch has no such operator")
    return found


def describe(schema: torch._C.FunctionSchema) -> str:
    """How the dispatcher serves an overload before anything is registered for xla."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    name = full_name(schema)
    if has_kernel(name, "CompositeImplicitAutograd"):
        return "composed by PyTorch from other operators: needs no lowering"
    if has_kernel(name, "CompositeExplicitAutograd"):
        return "composed by PyTorch where no backend has a kernel: a lowering replaces that"
    if has_kernel(name, "Meta") or name in torch._C._dispatch_get_registrations_for_dispatch_key("Meta"):
        return "has a meta kernel: shapes and errors come from it"
    return "has no meta kernel: the lowering's own types decide the result's shape"


def table_entry(name: str) -> str | None:
    """Where a table already names the operator."""
    for path in sorted(OPS.glob("*.cpp")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if f'"{name}"' in line:
                return f"src/ops/{path.name}:{number}"
    return None


def write_lowering(name: str, schema: torch._C.FunctionSchema) -> str:
    base = name.removeprefix("aten::").lstrip("_")
    arguments = [a for a in schema.arguments if not a.is_out]
    lines = [f"  // {schema}"]
    if any(str(a.type) in ("number", "float") for a in arguments):
        lines.append("  const DType dtype = ctx.output().dtype;")
    for argument in arguments:
        reader = READERS.get(str(argument.type))
        if reader:
            lines.append(f"  [[maybe_unused]] const auto {argument.name} = {reader.format(name=argument.name)};")
    lines.append('  ctx.decline("not written");')
    return "\n".join([f"stablehlo::Values lower_{base}(LoweringContext& ctx) {{", *lines, "}", "", ""])


def add_to_family(name: str, family: str, schema: torch._C.FunctionSchema) -> Path:
    path = OPS / f"{family}.cpp"
    if not path.exists():
        families = sorted(p.stem for p in OPS.glob("*.cpp") if "_ops() {" in p.read_text())
        sys.exit(f"there is no family {family}; there are {', '.join(families)}")
    text = path.read_text()
    table = re.search(r"^const OpTable& \w+_ops\(\) \{$.*?^\}$", text, re.MULTILINE | re.DOTALL)
    end_of_namespace = text.rfind("}  // namespace\n", 0, table.start()) if table else -1
    if table is None or end_of_namespace < 0:
        sys.exit(f"{path}: found no operator table after an anonymous namespace")
    base = name.removeprefix("aten::").lstrip("_")
    body = table.group()
    if "  };\n  return table;" in body:
        body = body.replace("  };\n  return table;", f'      {{"{name}", lower_{base}}},\n  }};\n  return table;')
    else:
        body = body.replace(
            "    return entries;", f'    entries.push_back({{"{name}", lower_{base}}});\n    return entries;'
        )
    lowering = write_lowering(name, schema)
    path.write_text(
        text[:end_of_namespace] + lowering + text[end_of_namespace : table.start()] + body + text[table.end() :]
    )
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="./dev new-op", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("name", help="aten::hypot, or hypot")
    parser.add_argument("--family", help="file of src/ops to write to, such as binary")
    arguments = parser.parse_args()
    name = arguments.name if "::" in arguments.name else f"aten::{arguments.name}"
    schemas = schemas_of(name)
    for schema in schemas:
        print(schema)
        print(f"    {describe(schema)}")
    where = table_entry(name)
    if where:
        print(f"\n{name} has a lowering already: {where}")
    elif arguments.family:
        path = add_to_family(name, arguments.family, schemas[0])
        print(f"\nAdded a lowering that declines, and its row, to {path.relative_to(OPS.parent.parent)}.")
        print("Write it, then see docs/adding_an_op.md for the tests.")


if __name__ == "__main__":
    main()
