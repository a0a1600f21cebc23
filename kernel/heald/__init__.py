"""Heald's kernel: hooks, rows, compositions, scopes, layers and errors. It knows no plugin.

A name is imported when it is first asked for: whatever is run or imported of Heald imports this
package, and `heald --version` needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heald.cancel import CancelToken, raise_if_cancelled
    from heald.comparing import FieldChange, RowChange, differences
    from heald.composition import Composition
    from heald.discovery import Discovery
    from heald.documents import Layer, read_layer
    from heald.editing import edit_toml
    from heald.errors import (
        Cancelled,
        CompositionError,
        DataFileMissing,
        FileUnwritable,
        HealdError,
        HomeInvalid,
        HookSpecError,
        NameConflict,
        NotFound,
        OutputFailed,
        RowsFailed,
        ScopeClosed,
        ServiceAbsent,
        VerbBroken,
        VocabularyConflict,
        describe,
        did_you_mean,
    )
    from heald.faults import FailedRow, Fault, FaultCode
    from heald.home_settings import clear_setting, write_setting
    from heald.hooks import (
        AsyncObserve,
        Collect,
        Declare,
        Next,
        Observe,
        Provide,
        Spec,
        Wrap,
        collect,
        declare,
        implements,
        observe,
        provide,
        wrap,
    )
    from heald.host import Host, open_host
    from heald.layers import Stack, stack
    from heald.lifecycle import host_closing
    from heald.plugin import NoConfig, Plugin, RowContext
    from heald.profiles import home_directory
    from heald.rows import Row, RowOrigin
    from heald.scope import Scope
    from heald.settings import setting
    from heald.supervisor import Deadlines
    from heald.tables import Contribution
    from heald.terminal import as_word, visible
    from heald.times import told_time
    from heald.vocabulary import Vocabulary
    from heald.wording import counted, shortened

_MODULES = {
    "cancel": ("CancelToken", "raise_if_cancelled"),
    "comparing": ("FieldChange", "RowChange", "differences"),
    "composition": ("Composition",),
    "discovery": ("Discovery",),
    "documents": ("Layer", "read_layer"),
    "editing": ("edit_toml",),
    "errors": (
        "Cancelled",
        "CompositionError",
        "DataFileMissing",
        "FileUnwritable",
        "HealdError",
        "HomeInvalid",
        "HookSpecError",
        "NameConflict",
        "NotFound",
        "OutputFailed",
        "RowsFailed",
        "ScopeClosed",
        "ServiceAbsent",
        "VerbBroken",
        "VocabularyConflict",
        "describe",
        "did_you_mean",
    ),
    "faults": ("FailedRow", "Fault", "FaultCode"),
    "home_settings": ("clear_setting", "write_setting"),
    "hooks": (
        "AsyncObserve",
        "Collect",
        "Declare",
        "Next",
        "Observe",
        "Provide",
        "Spec",
        "Wrap",
        "collect",
        "declare",
        "implements",
        "observe",
        "provide",
        "wrap",
    ),
    "host": ("Host", "open_host"),
    "layers": ("Stack", "stack"),
    "lifecycle": ("host_closing",),
    "plugin": ("NoConfig", "Plugin", "RowContext"),
    "profiles": ("home_directory",),
    "rows": ("Row", "RowOrigin"),
    "scope": ("Scope",),
    "settings": ("setting",),
    "supervisor": ("Deadlines",),
    "tables": ("Contribution",),
    "terminal": ("as_word", "visible"),
    "times": ("told_time",),
    "vocabulary": ("Vocabulary",),
    "wording": ("counted", "shortened"),
}
_HOME_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AsyncObserve",
    "CancelToken",
    "Cancelled",
    "Collect",
    "Composition",
    "CompositionError",
    "Contribution",
    "DataFileMissing",
    "Deadlines",
    "Declare",
    "Discovery",
    "FailedRow",
    "Fault",
    "FaultCode",
    "FieldChange",
    "FileUnwritable",
    "HealdError",
    "HomeInvalid",
    "HookSpecError",
    "Host",
    "Layer",
    "NameConflict",
    "Next",
    "NoConfig",
    "NotFound",
    "Observe",
    "OutputFailed",
    "Plugin",
    "Provide",
    "Row",
    "RowChange",
    "RowContext",
    "RowOrigin",
    "RowsFailed",
    "Scope",
    "ScopeClosed",
    "ServiceAbsent",
    "Spec",
    "Stack",
    "VerbBroken",
    "Vocabulary",
    "VocabularyConflict",
    "Wrap",
    "as_word",
    "clear_setting",
    "collect",
    "counted",
    "declare",
    "describe",
    "did_you_mean",
    "differences",
    "edit_toml",
    "home_directory",
    "host_closing",
    "implements",
    "observe",
    "open_host",
    "provide",
    "raise_if_cancelled",
    "read_layer",
    "setting",
    "shortened",
    "stack",
    "told_time",
    "visible",
    "wrap",
    "write_setting",
]


if not TYPE_CHECKING:  # to a checker, a module with `__getattr__` has every name there could be

    def __getattr__(name: str) -> object:
        """Import one of the names above."""
        if name not in _HOME_OF:
            raise AttributeError(f"module 'heald' has no attribute {name!r}", name=name)
        value = globals()[name] = getattr(import_module(f"heald.{_HOME_OF[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
