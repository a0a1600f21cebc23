"""What a plugin class says about itself, read once and without constructing it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from heald.errors import did_you_mean
from heald.faults import FaultCode
from heald.hooks import Declare, Provide, Spec, implemented, is_remarked
from heald.plugin import Plugin


@attrs.frozen
class Implementation:
    """A method of a plugin class, and the specification it implements."""

    spec: Spec
    attribute: str


@attrs.frozen
class ClassFault:
    """Something about a plugin class that cannot be used."""

    code: FaultCode
    message: str


@attrs.frozen
class Shape:
    """What a plugin class implements, in the order it is written, and what it requires."""

    implementations: tuple[Implementation, ...]
    provides: tuple[Provide[Any], ...]
    """The services a row is meant to provide, even by a method that has a fault."""
    requires: tuple[Provide[Any], ...]
    faults: tuple[ClassFault, ...]

    @cached_property
    def declares(self) -> tuple[tuple[Declare[Any], str], ...]:
        """The vocabularies the class adds to, and the class method for each."""
        declares = ((i.spec, i.attribute) for i in self.implementations)
        return tuple((spec, name) for spec, name in declares if isinstance(spec, Declare))


_shapes: WeakKeyDictionary[type[Plugin[Any]], Shape] = WeakKeyDictionary()


def shape_of(cls: type[Plugin[Any]]) -> Shape:
    """Read a plugin class: its implementations, and everything that cannot be right about it."""
    if (shape := _shapes.get(cls)) is None:
        implementations: list[Implementation] = []
        provides: dict[Provide[Any], str] = {}
        faults = list(_class_faults(cls))
        for attribute in _attributes(cls):
            spec, found = _read(cls, attribute)
            faults += found
            if spec is not None and not found:
                implementations.append(Implementation(spec, attribute))
            if isinstance(spec, Provide) and provides.setdefault(spec, attribute) != attribute:
                message = f"{provides[spec]} and {attribute} both provide {spec}"
                faults.append(ClassFault("SERVICE_CONFLICT", f"{cls.__qualname__}: {message}"))
        requires = cls.requires if _are_services(cls.requires) else ()
        shape = Shape(tuple(implementations), tuple(provides), requires, tuple(faults))
        _shapes[cls] = shape
    return shape


def _are_services(requires: object) -> bool:
    return isinstance(requires, tuple) and all(isinstance(spec, Provide) for spec in requires)


def _attributes(cls: type) -> Iterator[str]:
    """Yield attribute names, a base's before a subclass's, else in the order they are written."""
    yield from dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))


def _class_faults(cls: type[Plugin[Any]]) -> Iterator[ClassFault]:
    name = cls.__qualname__
    if not attrs.has(cls.Config):
        yield ClassFault("PLUGIN_INVALID", f"{name}.Config is not an attrs class")
    if not _are_services(cls.requires):
        yield ClassFault("PLUGIN_INVALID", f"{name}.requires is not a tuple of provide hooks")
    for method in ("start", "stop"):
        if not inspect.iscoroutinefunction(getattr(cls, method)):
            yield ClassFault("PLUGIN_INVALID", f"{name}.{method} is not async")
    if cls.__eq__ is not object.__eq__:
        message = f"{name} defines equality; rows are told apart by identity (eq=False)"
        yield ClassFault("PLUGIN_INVALID", message)


def _read(cls: type, attribute: str) -> tuple[Spec | None, list[ClassFault]]:
    """Read one attribute; what is neither an implementation nor nearly one is passed over."""
    static = inspect.getattr_static(cls, attribute)
    function = _underlying(static)
    spec = implemented(static) or implemented(function)
    if spec is None:
        return None, _hidden_implementation(cls, attribute, function)
    if not isinstance(spec, Spec):
        return None, [ClassFault("HOOK_UNKNOWN", _unknown_hook(cls, attribute, spec))]
    name = f"{cls.__qualname__}.{attribute}"
    wrong = [f"{name}: {message}" for message in _signature_faults(static, function, spec)]
    return spec, [ClassFault("HOOK_SIGNATURE", message) for message in wrong]


def _underlying(static: object) -> object:
    """Return the function inside a class method, static method or property."""
    if isinstance(static, classmethod | staticmethod):
        function: object = static.__func__
        return function
    return static.fget if isinstance(static, property) else static


def _signature_faults(static: object, function: object, spec: Spec) -> Iterator[str]:
    wanted = "class method" if isinstance(spec, Declare) else "plain method"
    fits = classmethod if isinstance(spec, Declare) else FunctionType
    if not (
        isinstance(static, fits)
        and isinstance(function, FunctionType)
        and implemented(function) is spec
    ):
        yield f"{spec} is implemented by a {wanted}, with heald.implements right above `def`"
        return
    if is_remarked(function, spec):
        yield f"order comes from rows, so a pluggy marker may not be added to {spec}"
    if inspect.iscoroutinefunction(function) != spec.is_async:
        colour = "async" if spec.is_async else "plain"
        yield f"{spec} is {colour}, so define it {colour}"
    own, *others = [*inspect.signature(function).parameters.values()] or (None,)
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if own is None or [(p.name, p.kind) for p in others] != [(n, plain) for n in spec.parameters]:
        want = ", ".join(("self", *spec.parameters))
        yield f"expected ({want}) for {spec}, got {inspect.signature(function)}"


def _hidden_implementation(cls: type, attribute: str, function: object) -> list[ClassFault]:
    """Refuse to lose a hook because an override was not marked; None takes it out on purpose."""
    if function is None:
        return []
    for base in cls.__mro__:
        spec = implemented(_underlying(vars(base).get(attribute)))
        if isinstance(spec, Spec):
            message = f"{cls.__qualname__}.{attribute} hides an implementation of {spec}; mark it"
            return [ClassFault("HOOK_SIGNATURE", f"{message} with heald.implements too")]
    return []


def _unknown_hook(cls: type, attribute: str, spec: object) -> str:
    """Name the hook that was probably meant, as far as the plugin's own module shows it."""
    word = spec if isinstance(spec, str) else getattr(spec, "__name__", attribute)
    known = {spec.name: str(spec) for spec in _specs_in_sight(inspect.getmodule(cls))}
    names = known.keys() | set(known.values())
    return f"{cls.__qualname__}.{attribute} implements unknown hook {word!r}; " + did_you_mean(
        word, names
    )


def _specs_in_sight(module: ModuleType | None) -> Iterator[Spec]:
    names: Mapping[str, object] = vars(module) if module else {}
    for value in names.values():
        inner = vars(value).values() if isinstance(value, ModuleType) else (value,)
        yield from (item for item in inner if isinstance(item, Spec))
