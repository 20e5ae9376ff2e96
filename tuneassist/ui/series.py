"""Series that stay small however long a run gets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Thinned(Generic[T]):
    """At most `cap` evenly spaced items of a stream, and always its last one.

    When the series is full, every second item is dropped and only every second item is taken from then on,
    so that what is kept stays spread over the whole stream.
    """

    cap: int = 512
    items: tuple[T, ...] = ()
    stride: int = 1
    seen: int = 0
    last: T | None = None

    def add(self, item: T) -> Thinned[T]:
        """Return the series with one item more."""
        items, stride = self.items, self.stride
        if self.seen % stride == 0:
            items = (*items, item)
            if len(items) > self.cap:
                items, stride = items[::2], stride * 2
        return replace(self, items=items, stride=stride, seen=self.seen + 1, last=item)

    def all(self) -> tuple[T, ...]:
        """The kept items in order; the last one of the stream is always among them."""
        if self.last is None or (self.items and self.items[-1] is self.last):
            return self.items
        return (*self.items, self.last)


def tail(items: tuple[T, ...], item: T, cap: int) -> tuple[T, ...]:
    """Return `items` and `item`, without the oldest ones beyond `cap`."""
    return (*items[max(0, len(items) + 1 - cap) :], item)
