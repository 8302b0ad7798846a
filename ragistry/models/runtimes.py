"""Start the runtime of the models in this process: onnxruntime, or OpenVINO where it computes in bfloat16."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ragistry import trace
from ragistry.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Runtime = Literal["auto", "onnxruntime", "openvino"]
ONNXRUNTIME, OPENVINO = "onnxruntime", "openvino"

_log = logging.getLogger(__name__)
_failed: list[str] = []  # why OpenVINO does not start in this process


class Session(Protocol):
    """The used part of `onnxruntime.InferenceSession`, which has no types."""

    def run(self, outputs: list[str], inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
        """Compute the named outputs, in their order."""
        ...


def check_runtime(runtime: str) -> None:
    """Raise `ConfigError` if ``runtime`` is OpenVINO and that is not installed."""
    if runtime == OPENVINO and not _has_openvino():
        from ragistry.utils.installation import install_command

        raise ConfigError(f"runtime {runtime!r} is not installed; run: {install_command('openvino')}")


def runtime_for(runtime: Runtime, *, much: bool) -> str:
    """Return the runtime to use; with ``auto``, OpenVINO for much work on a processor that has bfloat16.

    OpenVINO takes about 240 ms longer to load. In bfloat16, it computes almost twice as many texts per second.
    """
    if runtime == ONNXRUNTIME or _failed:
        return ONNXRUNTIME
    return OPENVINO if runtime == OPENVINO or (much and _has_openvino() and has_bfloat16()) else ONNXRUNTIME


@cache
def _has_openvino() -> bool:
    return find_spec("openvino") is not None


@cache
def has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether the processor multiplies numbers in bfloat16, according to Linux; elsewhere False."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


def runtime_in_use(session: Session) -> str:
    """Name the runtime of a session, its version and the kind of its numbers, for records."""
    from importlib.metadata import version

    name, numbers = (OPENVINO, session.numbers) if isinstance(session, _OpenVINO) else (ONNXRUNTIME, "float32")
    return f"{name} {version(name)}, {numbers}"


def load_session(
    model: bytes, runtime: str = ONNXRUNTIME, threads: int = 1, *, external: Mapping[str, bytes] | None = None
) -> Session:
    """Load an ONNX model; its runs may be called from ``threads`` threads at once, and each takes one core.

    ``external``: files with its weights, by the names that it has for them; only for onnxruntime.
    If OpenVINO does not start, one line is logged and traced, and onnxruntime loads the model.
    """
    if runtime == OPENVINO:
        try:
            return _OpenVINO(model, threads)
        except Exception as error:  # noqa: BLE001  its loader raises what the linker and its plugins raise
            _failed.append(str(error))
            reason = f"{type(error).__name__}: {str(error).strip()}".split("\n")[0][:200]
            said = f"OpenVINO does not start ({reason}); the model runs on onnxruntime in float32"
            _log.warning("%s", said)
            trace.degraded(said)
    # Imported on first use, so that creating an embedder and reading its fingerprint cost nothing.
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    # Parallel runs with one thread each are faster than sequential runs that divide their work among threads. A session
    # without its own threads does not keep a core busy between runs.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3 if external is None else 4  # errors are raised too
    if external:
        sizes = [len(content) for content in external.values()]
        options.add_external_initializers_from_files_in_memory(list(external), list(external.values()), sizes)
    session: Session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session


class _OpenVINO:
    """A model on OpenVINO, in bfloat16 if the processor has it."""

    def __init__(self, model: bytes, threads: int) -> None:
        openvino = _openvino()
        self.numbers = "bfloat16" if has_bfloat16() else "float32"
        core = openvino.Core()
        settings = {
            "INFERENCE_PRECISION_HINT": "bf16" if has_bfloat16() else "f32",
            "NUM_STREAMS": threads,
            "INFERENCE_NUM_THREADS": threads,
            "ENABLE_CPU_PINNING": False,
        }
        self._compiled = core.compile_model(core.read_model(model), "CPU", settings)
        self._idle: deque[Any] = deque()

    def run(self, outputs: list[str], inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
        try:
            request = self._idle.pop()
        except IndexError:
            request = self._compiled.create_infer_request()
        try:
            results = request.infer(dict(inputs), share_inputs=True)
            return [results[name].copy() for name in outputs]  # the next run overwrites the arrays
        finally:
            self._idle.append(request)


def _openvino() -> Any:
    """Import OpenVINO without its converter, which loads a package that reports use to a server."""
    name = "openvino.tools.ovc"
    blocked = name not in sys.modules
    if blocked:
        sys.modules[name] = None  # type: ignore[assignment]  # what makes the import fail, which OpenVINO allows
    try:
        import openvino  # type: ignore[import-not-found,unused-ignore]
    finally:
        if blocked:
            del sys.modules[name]
    return openvino
