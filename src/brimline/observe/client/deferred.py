"""kafka-python without its clients, until somebody asks for one.

The package ``kafka`` imports its producer, consumers and admin client when anything in it is imported: a quarter of the
time and a tenth of the memory of describing a cluster, which needs its connections only. So the package is put in place
without running its ``__init__``; the first look at a name that only ``__init__`` defines runs it. Nobody in the process
sees a difference, and if ``kafka`` is there already nothing is done.
"""

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType

_PACKAGE = "kafka"


class _DeferredPackage(ModuleType):
    def __getattr__(self, name: str) -> object:
        """Called for what is not there: the real ``__init__`` runs, once, and the module is an ordinary one."""
        self.__class__ = ModuleType  # type: ignore[assignment]  # it has no fields of its own
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def defer_clients() -> None:
    spec = None if _PACKAGE in sys.modules else find_spec(_PACKAGE)
    if spec is not None:
        module = module_from_spec(spec)
        module.__class__ = _DeferredPackage
        sys.modules[_PACKAGE] = module
