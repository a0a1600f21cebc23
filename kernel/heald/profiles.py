"""Where the host composition's layers come from: profile, bundles, the person's files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from heald.discovery import BUNDLES, PROFILES, Discovery, Found
from heald.documents import Layer, read_layer
from heald.errors import CompositionError, HomeInvalid, NotFound, did_you_mean
from heald.faults import Fault, FaultCode
from heald.rows import is_id

HOME_VARIABLE = "HEALD_HOME"
DEFAULT_PROFILE = "default"
FILE = "heald.toml"
HOME_KEYS = ("profile",)
_PROFILE_KEYS = ("label", "bundles")


def home_directory(env: Mapping[str, str] = os.environ) -> Path:
    """Return where everything lives: `HEALD_HOME`, else the platform's data directory.

    Raises `HomeInvalid` if there is no telling.
    """
    named = env.get(HOME_VARIABLE)
    try:
        home = Path(named).expanduser() if named else _usual_home()
    except RuntimeError as error:
        raise HomeInvalid(named or "the home directory", f"is unknown ({error})") from error
    if not named and not home.is_absolute():  # a user without an entry and without HOME
        raise HomeInvalid(str(home), "is no absolute path")
    return home.absolute()


def _usual_home() -> Path:
    import platformdirs  # noqa: PLC0415 - of no use to whoever names the directory

    return platformdirs.user_data_path("heald")


def usable_home(home: Path) -> Path:
    """Return `home`; raise `HomeInvalid` if it is there and no directory. It need not be there."""
    if home.exists() and not home.is_dir():
        raise HomeInvalid(str(home), "is not a directory")
    return home


@attrs.frozen
class Profile:
    """The layers a host composition is built from, in the order they apply."""

    name: str
    layers: tuple[Layer, ...]


def read_profile(
    home: Path,
    discovery: Discovery,
    *,
    name: str | None = None,
    patches: Sequence[Path | Layer] = (),
) -> Profile:
    """Read the bundles of a profile, its patch, the home patch and further patches, in this order.

    Without a name the home's `heald.toml` says which profile, else it is `default`. Raises
    `CompositionError`, `NotFound` or `HomeInvalid`.
    """
    own = _read_own(usable_home(home) / FILE, HOME_KEYS)
    chosen = name or _setting(own, "profile", str, DEFAULT_PROFILE)
    profile = _profile_layer(home, discovery, chosen, None if name else own)
    bundles = _setting(profile, "bundles", list, [])
    if not all(isinstance(item, str) for item in bundles):
        raise _fault("LAYER_INVALID", "expected a list of names", profile.name, "bundles")
    layers = [_bundle_layer(discovery, bundle, profile.name) for bundle in bundles]
    layers += [profile, *([own] if own is not None else ())]
    layers += [patch if isinstance(patch, Layer) else read_layer(patch) for patch in patches]
    return Profile(chosen, tuple(layers))


def _read_own(path: Path, keys: tuple[str, ...]) -> Layer | None:
    """Read a file that a person may not have written; one that cannot be read is no absent one."""
    try:
        return read_layer(path, keys=keys)
    except CompositionError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _profile_layer(home: Path, discovery: Discovery, name: str, chooser: Layer | None) -> Layer:
    mine = home / "profiles"
    own = _read_own(mine / name / FILE, _PROFILE_KEYS) if is_id(name) else None
    if own is not None:
        return own
    packaged = discovery.group(PROFILES)
    if name in packaged:
        return _packaged(packaged[name], _PROFILE_KEYS)
    known = {path.parent.name for path in mine.glob(f"*/{FILE}")} | set(packaged)
    if chooser is not None and "profile" in chooser.extra:
        message = f"no profile {name!r}; {did_you_mean(name, known)}"
        raise _fault("PROFILE_UNKNOWN", message, chooser.name, "profile")
    raise NotFound("profile", name, tuple(sorted(known)))


def _bundle_layer(discovery: Discovery, name: str, profile: str) -> Layer:
    try:
        return _packaged(discovery.named(BUNDLES, name, "bundle"), ())
    except NotFound as error:
        raise _fault("BUNDLE_UNKNOWN", str(error), profile, "bundles") from error


def _packaged(found: Found, keys: tuple[str, ...]) -> Layer:
    return read_layer(found.file(), keys=keys, name=f"{found.distribution}:{found.value}")


def _setting(layer: Layer | None, key: str, kind: type, default: Any) -> Any:
    value = layer.extra.get(key, default) if layer is not None else default
    if layer is not None and not isinstance(value, kind):
        message = f"expected {kind.__name__}, got {type(value).__name__} {value!r}"
        raise _fault("LAYER_INVALID", message, layer.name, key)
    return value


def _fault(code: FaultCode, message: str, file: str, field: str) -> CompositionError:
    return CompositionError((Fault(code, message, file, field=field),))
