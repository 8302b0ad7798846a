"""The runtime of the model in this process: which is chosen, one that does not start, and equal vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragistry import open_workspace
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.models import runtimes
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.models.runtimes import has_bfloat16, runtime_for
from tests.messages import refused
from tests.models.test_minilm_parts import run_python
from tests.skips import OPENVINO

GENOA = "fpu sse2 avx2 avx512f avx512_vnni avx512_bf16 avx512vl"
MILAN = "fpu sse2 avx2 vaes vpclmulqdq"
SAPPHIRE = "fpu avx512f amx_bf16 amx_tile amx_int8"
ICE_LAKE = "fpu avx512f avx512_vnni amx_tile"

BROKEN = {
    "import": "raise ImportError('libopenvino.so.2640: cannot open shared object file')",
    "core": "class Core:\n    def __init__(self):\n        raise RuntimeError('no plugins.xml\\nsecond line')",
    "model": "class Core:\n    def read_model(self, model):\n        raise ValueError('unsupported operator')",
    "exit": "import no_such_module_of_openvino",
}


@pytest.mark.parametrize(
    ("flags", "expected"), [(GENOA, True), (SAPPHIRE, True), (MILAN, False), (ICE_LAKE, False), ("", False)]
)
def test_bfloat16_is_read_from_the_flags_of_the_processor(tmp_path: Path, flags: str, expected: bool) -> None:
    (tmp_path / "cpuinfo").write_text(f"model name\t: a processor\nflags\t\t: {flags}\nbugs\t\t: avx512_bf16\n")
    assert has_bfloat16(tmp_path / "cpuinfo") is expected


def test_another_system_has_no_file_of_processors(tmp_path: Path) -> None:
    assert not has_bfloat16(tmp_path / "missing")


@pytest.mark.parametrize(
    ("setting", "installed", "bfloat16", "much", "expected"),
    [
        ("auto", True, True, True, "openvino"),
        ("auto", True, True, False, "onnxruntime"),  # a search from the command line
        ("auto", True, False, True, "onnxruntime"),
        ("auto", False, True, True, "onnxruntime"),
        ("onnxruntime", True, True, True, "onnxruntime"),
        ("openvino", True, False, False, "openvino"),
    ],
)
def test_the_runtime_follows_the_setting_the_processor_and_the_work(
    monkeypatch: pytest.MonkeyPatch,
    setting: runtimes.Runtime,
    installed: bool,
    bfloat16: bool,
    much: bool,
    expected: str,
) -> None:
    monkeypatch.setattr(runtimes, "_has_openvino", lambda: installed)
    monkeypatch.setattr(runtimes, "has_bfloat16", lambda: bfloat16)
    assert runtime_for(setting, much=much) == expected


def test_a_runtime_that_is_not_installed_is_refused_when_the_workspace_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtimes, "_has_openvino", lambda: False)
    with refused(ConfigError, "openvino"):
        MiniLMEmbedder(runtime="openvino")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text("runtime: openvino\n")
    with refused(InvalidConfigError, "documents.yaml:1", "openvino"):
        open_workspace(tmp_path)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_runtime_that_does_not_start_gives_one_line_and_onnxruntime_goes_on(tmp_path: Path, kind: str) -> None:
    (tmp_path / "openvino").mkdir()
    (tmp_path / "openvino" / "__init__.py").write_text(BROKEN[kind])
    printed = run_python(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from ragistry import trace
        from ragistry.models.minilm import MiniLMEmbedder
        embedder = MiniLMEmbedder(runtime="openvino")
        with trace.collect() as collected:
            for _ in range(3):
                with trace.stage("embed"):
                    embedder.embed(["text"])
        print([bool(stage.degraded) for stage in collected.stages()], embedder.runtime.split()[0])
        print(MiniLMEmbedder(runtime="openvino").embed(["text"]).shape, "\\n" in collected.stages()[0].degraded)
    """)
    assert printed.split("\n") == ["[True, False, False] onnxruntime", "(1, 384) False"]


def test_openvino_computes_the_same_vectors_and_connects_to_nothing(data: Path) -> None:
    pytest.importorskip("openvino", reason=OPENVINO, exc_type=ImportError)
    from benchmarks.embedder import read_scifact

    printed = run_python("""
        import sys
        events = set()
        sys.addaudithook(lambda event, _: events.add(event) if event.startswith("socket.") else None)
        from ragistry.models.minilm import MiniLMEmbedder
        print(MiniLMEmbedder(runtime="openvino").runtime, MiniLMEmbedder(runtime="openvino").embed(["text"]).shape)
        print(*events, *(name for name in sys.modules if "openvino_telemetry" in name or "openvino.tools" in name))
    """)
    assert printed.strip() == "(1, 384)"
    passages, _ = read_scifact(data / "scifact", 1_000)
    cut = [passage[:200] for passage in passages]  # `benchmarks.runtimes` compares whole ones
    fast = MiniLMEmbedder(runtime="openvino")
    cosines = np.einsum("ij,ij->i", fast.embed(cut), MiniLMEmbedder(runtime="onnxruntime").embed(cut))
    assert fast.runtime.startswith("openvino")
    assert cosines.min() > 1 - 1e-4
    assert fast.fingerprint == MiniLMEmbedder().fingerprint
