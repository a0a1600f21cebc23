"""Which language a file is written in, told by its name."""

from __future__ import annotations

from pathlib import PurePosixPath

_BY_SUFFIX = {
    ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".hpp": "C++", ".cs": "C#",
    ".css": "CSS", ".csv": "CSV", ".dart": "Dart", ".ex": "Elixir", ".exs": "Elixir",
    ".go": "Go", ".hs": "Haskell", ".html": "HTML", ".java": "Java", ".js": "JavaScript",
    ".mjs": "JavaScript", ".json": "JSON", ".jsonl": "JSON", ".jsx": "JavaScript",
    ".kt": "Kotlin", ".lua": "Lua", ".md": "Markdown", ".ml": "OCaml", ".php": "PHP",
    ".pl": "Perl", ".proto": "Protocol Buffers", ".py": "Python", ".pyi": "Python",
    ".r": "R", ".rb": "Ruby", ".rs": "Rust", ".rst": "reStructuredText", ".scala": "Scala",
    ".scss": "CSS", ".sh": "Shell", ".bash": "Shell", ".sql": "SQL", ".svelte": "Svelte",
    ".swift": "Swift", ".tex": "TeX", ".toml": "TOML", ".ts": "TypeScript", ".tsx": "TypeScript",
    ".txt": "Text", ".vue": "Vue", ".xml": "XML", ".yaml": "YAML", ".yml": "YAML", ".zig": "Zig",
}  # fmt: skip
_BY_NAME = {"Dockerfile": "Dockerfile", "Makefile": "Make", "CMakeLists.txt": "CMake"}


def language_of(path: str) -> str:
    """Return the language that a path's name stands for, or `other`."""
    name = PurePosixPath(path)
    return _BY_NAME.get(name.name) or _BY_SUFFIX.get(name.suffix.lower(), "other")
