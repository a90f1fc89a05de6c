"""The wheel's build hook: compiles the JMX bridge from the Java source in the tree and puts the jar beside it.

A wheel without the bridge would break JMX in silence, so a missing compiler fails the build; who wants such a wheel
says so with BRIMLINE_BUILD_WITHOUT_JMX=1. An editable install has no jar: the checkout compiles it on first use.
"""

import importlib.util
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path("brimline/metrics")
OPT_OUT = "BRIMLINE_BUILD_WITHOUT_JMX"


class JmxBridgeHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get(OPT_OUT):
            return
        bridge = load_bridge_jar(Path(self.root) / "src" / PACKAGE / "bridge_jar.py")
        javac = bridge.find_tool("javac")
        if javac is None:
            raise RuntimeError(
                f"no javac on the PATH or in JAVA_HOME: the wheel's JMX bridge is compiled from source, so install a "
                f"JDK {bridge.OLDEST_JAVA} or newer, or set {OPT_OUT}=1 for a wheel without JMX"
            )
        self._directory = tempfile.TemporaryDirectory(prefix="brimline-wheel-")
        jar = Path(self._directory.name) / bridge.JAR_NAME
        bridge.compile_jar(javac, jar)
        build_data["force_include"][str(jar)] = str(PACKAGE / "java" / bridge.JAR_NAME)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_directory"):
            self._directory.cleanup()


def load_bridge_jar(path: Path) -> ModuleType:
    """By its path: Brimline's own dependencies are not there while it is being built."""
    spec = importlib.util.spec_from_file_location("brimline_bridge_jar", path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} is not there to compile the JMX bridge")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
