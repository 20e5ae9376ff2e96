"""The C header beside an exported library: a comment for Python and C, and two functions that call it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tuneassist.records import TensorSpec

_TEMPLATE = """\
/*
 * @ABOUT@
 *
 * Functions of @LIBRARY@ (each writes its last argument; tensors are dense, row-major, 64-byte aligned):
@SIGNATURES@
 *
 * From Python, with the TVM that made it (or its runtime alone):
 *
@PYTHON@
 *
 * From C: compile against the headers and libraries that come with the Python package tvm_ffi and the
 * runtime of the package tvm (the library itself needs TVM's runtime, for threads):
 *
 *     cc app.c $(tvm-ffi-config --cflags) \\
 *        -Wl,--no-as-needed $(tvm-ffi-config --ldflags) $(tvm-ffi-config --libs) -L TVM/lib -ltvm_runtime
 *
 *     TVMFFIObjectHandle kernel;
 *     if (@PREFIX@_load("./@LIBRARY@", "main", &kernel)) ...      once
 *     DLTensor *tensors[] = {@C_ARGUMENTS@};
 *     if (@PREFIX@_call(kernel, tensors, @COUNT@)) ...           as often as you like
 *
 * Both return 0 on success. TVM_NUM_THREADS sets the number of threads.
 */
#ifndef TUNEASSIST_@GUARD@_H
#define TUNEASSIST_@GUARD@_H

#include <string.h>

#include <tvm/ffi/c_api.h>

/* Find a function of the library; it stays loaded. */
static inline int @PREFIX@_load(const char *library, const char *name, TVMFFIObjectHandle *function) {
  const char *const steps[] = {"ffi.ModuleLoadFromFile", "ffi.ModuleGetFunction"};
  TVMFFIAny arguments[3], result;
  int step;
  memset(arguments, 0, sizeof arguments);
  memset(&result, 0, sizeof result);
  arguments[0].type_index = kTVMFFIRawStr;
  arguments[0].v_c_str = library;
  for (step = 0; step < 2; ++step) {
    TVMFFIByteArray key;
    TVMFFIObjectHandle call = NULL;
    int failed;
    key.data = steps[step];
    key.size = strlen(steps[step]);
    if (TVMFFIFunctionGetGlobal(&key, &call) || call == NULL) return -1;
    failed = TVMFFIFunctionCall(call, arguments, step == 0 ? 1 : 3, &result);
    TVMFFIObjectDecRef(call);
    if (failed) return failed;
    if (step == 0) {
      arguments[0] = result;
      arguments[1].type_index = kTVMFFIRawStr;
      arguments[1].v_c_str = name;
      arguments[2].type_index = kTVMFFIBool;
      arguments[2].v_int64 = 1;
      memset(&result, 0, sizeof result);
    }
  }
  if (result.type_index != kTVMFFIFunction) return -1;
  *function = result.v_obj;
  return 0;
}

/* Call it on tensors; the last one is written. */
static inline int @PREFIX@_call(TVMFFIObjectHandle function, DLTensor **tensors, int count) {
  TVMFFIAny arguments[16], result;
  int at;
  if (count > 16) return -1;
  memset(arguments, 0, sizeof arguments);
  memset(&result, 0, sizeof result);
  for (at = 0; at < count; ++at) {
    arguments[at].type_index = kTVMFFIDLTensorPtr;
    arguments[at].v_ptr = tensors[at];
  }
  return TVMFFIFunctionCall(function, arguments, count, &result);
}

#endif
"""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the library, its output last."""

    name: str
    arguments: tuple[TensorSpec, ...]


def header_text(
    stem: str, library: str, about: Sequence[str], functions: Sequence[Function], packed_position: int
) -> str:
    """The header of a library.

    Args:
        stem: File name without ending; names the C functions.
        library: File name of the library.
        about: Lines on where it comes from.
        functions: `main` first, then `pack` and `main_packed` where a weight is packed.
        packed_position: Which argument of `main` is packed; unused where there is no `pack`.
    """
    prefix = re.sub(r"\W", "_", f"_{stem}" if stem[:1].isdigit() else stem, flags=re.ASCII)
    main = functions[0]
    values = {
        "ABOUT": "\n * ".join(about),
        "LIBRARY": library.replace("*/", ""),
        "SIGNATURES": "\n".join(f" *     {_signature(function)}" for function in functions),
        "PYTHON": "\n".join(f" *     {line}" for line in python_lines(library, functions, packed_position)),
        "PREFIX": prefix,
        "GUARD": prefix.upper(),
        "C_ARGUMENTS": ", ".join(f"&{name}" for name in argument_names(main)),
        "COUNT": str(len(main.arguments)),
    }
    # Not str.format: the C code is full of braces.
    return re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], _TEMPLATE)


def python_lines(library: str, functions: Sequence[Function], packed_position: int) -> list[str]:
    """Python that loads the library and calls it on NumPy arrays named like its arguments."""
    main = functions[0]
    names = argument_names(main)
    *inputs, output = names
    spec = main.arguments[-1]
    lines = [
        "import tvm",
        f'library = tvm.runtime.load_module("./{library}")',
        f"# {', '.join(inputs)}: NumPy arrays of the shapes and types above",
        *(f"{name} = tvm.runtime.tensor({name})" for name in inputs),
        f'{output} = tvm.runtime.empty({spec.shape}, "{spec.dtype}")',
        f'library["main"]({", ".join(names)})',
        f"result = {output}.numpy()",
    ]
    if len(functions) > 1:
        packed = functions[1].arguments[-1]
        weight = names[packed_position]
        lines += [
            "# The same, with the weight packed once (this is what was measured):",
            f'packed = tvm.runtime.empty({packed.shape}, "{packed.dtype}")',
            f'library["pack"]({weight}, packed)',
            f'library["main_packed"]({", ".join("packed" if name == weight else name for name in names)})',
        ]
    return lines


def argument_names(function: Function) -> list[str]:
    """Names of the arguments as identifiers, each once."""
    names: list[str] = []
    for spec in function.arguments:
        name = re.sub(r"\W", "_", spec.name, flags=re.ASCII) or "tensor"
        name = f"_{name}" if name[0].isdigit() else name
        while name in names:
            name += "_"
        names.append(name)
    return names


def _signature(function: Function) -> str:
    arguments = zip(argument_names(function), function.arguments, strict=True)
    shown = (f"{name}: {spec.dtype}[{', '.join(map(str, spec.shape))}]" for name, spec in arguments)
    return f"{function.name}({', '.join(shown)})"
